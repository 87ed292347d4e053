"""Admission: decisions on ids of one stripe that have no row yet.

Guarded by the lock of the stripe. A decision changes only the state of waiting ids in its
`Admission`. Ids of a batch are distinct; one that occurs twice may be refused once and admitted
once.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from psrt.core.specs import CountFilter, Probability, ShowClick, SparseTableSpec
from psrt.core.types import F32, I32, I64
from psrt.kernels.tables import admission
from psrt.pserver.frozen import RecordArray


class Admission(Protocol):
    """Decides which ids get a row."""

    @property
    def nbytes(self) -> int:
        """Memory for the state of waiting ids."""
        ...

    def admit(self, ids: I64, order: I32, found: I32, counts: F32) -> I32:
        """Select the positions in `order` (m,) of the batch `ids` (n,) that may have a row, in
        order.

        `found` (m,) is negative where there is no row yet. `counts` are shows and clicks (n, 2), or
        (0, 2): one show each.
        """
        ...


class Drawn:
    """Admits a pseudo-random part of all ids, equal on every pserver."""

    nbytes = 0

    def __init__(self, rule: Probability, seed: int) -> None:
        admission.admit_drawn.load()
        self._numbers = (rule.probability, seed)

    def admit(self, ids: I64, order: I32, found: I32, counts: F32) -> I32:
        kept = np.empty_like(order)
        return kept[: admission.admit_drawn(ids, order, found, kept, *self._numbers)]


class Counted:
    """Admits ids with enough shows, or a high enough score; ids wait in hash buckets until then.

    Has the ids of virtual shards `[first_shard, last_shard)`. Memory pages of empty hash buckets
    cost nothing.
    """

    def __init__(
        self,
        spec: SparseTableSpec,
        rule: CountFilter | ShowClick,
        first_shard: int,
        last_shard: int,
    ) -> None:
        admission.admit_counted.load()
        ids_of_shard = -(-rule.waiting_ids // spec.virtual_shards)
        hash_buckets = max(1, -(-ids_of_shard // admission.BUCKET))
        buckets = hash_buckets * (last_shard - first_shard)
        self._records: F32 = np.zeros((buckets, admission.BUCKET_WORDS), np.float32)
        self.buckets_of_shard = hash_buckets
        self._layout = (first_shard, spec.virtual_shards, hash_buckets)
        self._first_bucket = first_shard * hash_buckets
        self._numbers = _weights(spec, rule)

    @property
    def nbytes(self) -> int:
        return self._records.nbytes

    @property
    def buckets(self) -> int:
        return len(self._records)

    @property
    def records(self) -> RecordArray:
        """The hash buckets, as a freeze copies them."""
        where = self._first_bucket, admission.AMOUNTS_AT
        return RecordArray("waiting", lambda: self._records, admission.BUCKET_WORDS, *where)

    def touched(self, ids: I64, order: I32, found: I32) -> I32:
        """The buckets of those of `ids[order]` that have no row: `admit` may change them."""
        out = np.empty_like(order)
        return out[: admission.find_buckets(ids, order, found, out, *self._layout)]

    def put(self, records: F32) -> None:
        """Write hash buckets (n, words) with their numbers in front, as a page has them."""
        self._records[self.numbers_of(records)] = records[:, 2:]

    def numbers_of(self, records: F32) -> I32:
        """The places of hash buckets of a page."""
        return (records.view(np.int64)[:, 0] - self._first_bucket).astype(np.int32)

    def admit(self, ids: I64, order: I32, found: I32, counts: F32) -> I32:
        kept = np.empty_like(order)
        size = admission.admit_counted(
            *(ids, order, found, kept, counts, *self._numbers), *(self._records, *self._layout)
        )
        return kept[:size]


class Grown:
    """Admits ids whose score has reached `threshold`; `counts` has scores in place of shows.

    For rows that continue those of another table.
    """

    nbytes = 0

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold

    def admit(self, ids: I64, order: I32, found: I32, counts: F32) -> I32:
        kept: I32 = order[(found >= 0) | (counts[order, 0] >= self._threshold)]
        return kept


def admission_of(spec: SparseTableSpec, first_shard: int, last_shard: int) -> Admission | None:
    """The admission of new ids of these virtual shards; None if every id may own a row."""
    match spec.admission:
        case Probability() as rule if rule.probability < 1:
            return Drawn(rule, spec.seed)
        case CountFilter(count=count) as rule if count > 1:
            return Counted(spec, rule, first_shard, last_shard)
        case ShowClick(threshold=threshold) as rule if threshold > 0:
            return Counted(spec, rule, first_shard, last_shard)
    return None


def _weights(spec: SparseTableSpec, rule: CountFilter | ShowClick) -> tuple[float, float, float]:
    """The weight of a show, the additional weight of a click, and the sum that admits an id."""
    if isinstance(rule, CountFilter):
        return 1.0, 0.0, rule.count
    score = spec.score
    return score.nonclick_coeff, score.click_coeff - score.nonclick_coeff, rule.threshold
