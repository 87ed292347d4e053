"""Who may own a row: decisions on the ids of one stripe that have none yet.

Guarded by the lock of the stripe. A decision changes nothing but what an `Admission` remembers of
ids that wait. Ids of a batch are distinct; one that stands twice may be refused once and admitted
once.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from psrt.core.specs import CountFilter, Probability, ShowClick, SparseTableSpec
from psrt.core.types import F32, I32, I64
from psrt.kernels.tables import admission


class Admission(Protocol):
    @property
    def nbytes(self) -> int:
        """Memory that holds what is remembered of ids that wait."""
        ...

    def admit(self, ids: I64, order: I32, found: I32, counts: F32) -> I32:
        """Of the positions `order` (m,) in the batch `ids` (n,) those that may have a row, in
        order; `found` (m,) is not negative where there is one. `counts` are shows and clicks
        (n, 2), or (0, 2): one show each."""
        ...


class Drawn:
    """A share of all ids, the same on every pserver."""

    nbytes = 0

    def __init__(self, rule: Probability, seed: int) -> None:
        admission.admit_drawn.load()
        self._numbers = (rule.probability, seed)

    def admit(self, ids: I64, order: I32, found: I32, counts: F32) -> I32:
        kept = np.empty_like(order)
        return kept[: admission.admit_drawn(ids, order, found, kept, *self._numbers)]


class Counted:
    """Ids that have been shown, or have a score, enough; they wait in buckets until then.

    Of virtual shards `[first_shard, last_shard)`. Pages of buckets that nobody waits in cost
    nothing.
    """

    def __init__(
        self,
        spec: SparseTableSpec,
        rule: CountFilter | ShowClick,
        first_shard: int,
        last_shard: int,
    ) -> None:
        admission.admit_counted.load()
        cells_of_shard = -(-rule.waiting_ids // spec.virtual_shards)
        buckets = max(1, -(-cells_of_shard // admission.BUCKET))
        cells = buckets * admission.BUCKET * (last_shard - first_shard)
        self._waiting: I64 = np.zeros(cells, np.int64)
        self._gathered: F32 = np.zeros(cells, np.float32)
        self._place = (first_shard, spec.virtual_shards, buckets)
        self._numbers = _worths(spec, rule)

    @property
    def nbytes(self) -> int:
        return self._waiting.nbytes + self._gathered.nbytes

    def admit(self, ids: I64, order: I32, found: I32, counts: F32) -> I32:
        kept = np.empty_like(order)
        size = admission.admit_counted(
            *(ids, order, found, kept, counts, *self._numbers),
            *(self._waiting, self._gathered, *self._place),
        )
        return kept[:size]


class Grown:
    """Ids whose score has reached `threshold`: for rows that continue those of another table, which
    puts the scores where others put shows."""

    nbytes = 0

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold

    def admit(self, ids: I64, order: I32, found: I32, counts: F32) -> I32:
        kept: I32 = order[(found >= 0) | (counts[order, 0] >= self._threshold)]
        return kept


def admission_of(spec: SparseTableSpec, first_shard: int, last_shard: int) -> Admission | None:
    """What decides over new ids of these virtual shards; None if every id may own a row."""
    match spec.admission:
        case Probability() as rule if rule.probability < 1:
            return Drawn(rule, spec.seed)
        case CountFilter(count=count) as rule if count > 1:
            return Counted(spec, rule, first_shard, last_shard)
        case ShowClick(threshold=threshold) as rule if threshold > 0:
            return Counted(spec, rule, first_shard, last_shard)
    return None


def _worths(spec: SparseTableSpec, rule: CountFilter | ShowClick) -> tuple[float, float, float]:
    """What a show is worth, how much more a click is, and what must be gathered."""
    if isinstance(rule, CountFilter):
        return 1.0, 0.0, rule.count
    worth = spec.score
    return worth.nonclick_coeff, worth.click_coeff - worth.nonclick_coeff, rule.threshold
