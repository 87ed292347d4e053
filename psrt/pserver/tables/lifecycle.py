"""When rows of a table end: the decisions of one sweep, made before it begins.

A `EvictionPolicy` holds for one pass over the rows, with the hour and the table's time it was
passed at: rows that are pushed while the pass is under way are younger than that and stay. Pure:
`psrt.kernels.tables.row_eviction` judges row by row, stripes drop.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from psrt.core.specs import Lifecycle, SparseTableSpec
from psrt.core.types import I64
from psrt.kernels.tables import AGE_BINS, REASONS

HOURS_PER_DAY = 24
_NOBODY = AGE_BINS  # a bin that no age falls into


@dataclass
class EvictionPolicy:
    """Who ends. `hour` counts since 1970, `time` is the table's (`SparseTable.time`).

    `quota` is how many of the rows in `oldest_bin` may still end, beside all older ones; a pass
    uses it up.
    """

    time: int
    hour: int
    ttl_rounds: int = 0
    ttl_hours: int = 0
    least_score: float = 0.0
    oldest_bin: int = _NOBODY
    quota: int = 0

    @property
    def spares_all(self) -> bool:
        limits = (self.ttl_rounds, self.ttl_hours, self.least_score)
        return not any(limits) and self.oldest_bin == _NOBODY


@dataclass
class Dropped:
    """What a sweep has dropped, or would drop: rows by reason, and their bytes."""

    rows: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REASONS[1:], 0))
    bytes: int = 0

    @property
    def total(self) -> int:
        return sum(self.rows.values())

    def add(self, counts: I64, row_bytes: int) -> None:
        """`counts` (5,) rows by reason, of which those KEPT do not count."""
        for reason, count in zip(REASONS[1:], counts[1:].tolist(), strict=True):
            self.rows[reason] += count
            self.bytes += count * row_bytes

    def merge(self, other: Dropped) -> None:
        for reason, count in other.rows.items():
            self.rows[reason] += count
        self.bytes += other.bytes


def by_age(spec: SparseTableSpec, time: int, hour: int) -> EvictionPolicy:
    """What ends beside training: rows past their time."""
    life = spec.lifecycle or Lifecycle()
    return EvictionPolicy(time, hour, life.ttl_rounds, _hours(life))


def by_shrink(spec: SparseTableSpec, time: int, hour: int) -> EvictionPolicy:
    """What ends by a shrink: rows past their time or below the least score."""
    life = spec.lifecycle or Lifecycle()
    return EvictionPolicy(time, hour, life.ttl_rounds, _hours(life), life.delete_score)


def by_memory(ages: I64, rows: int, time: int, hour: int) -> EvictionPolicy:
    """The `rows` rows that were pushed longest ago; `ages` (AGE_BINS,) counts all rows by age.

    Exact in number; which rows of the bin that is cut end is chance, so the order is exact to an
    eighth of an age.
    """
    if rows <= 0:
        return EvictionPolicy(time, hour)
    older = np.cumsum(ages[::-1])[::-1]  # older[b]: rows in bin b or beyond
    oldest_bin = int(np.flatnonzero(older >= min(rows, int(older[0])))[-1])
    quota = min(rows, int(older[0])) - int(older[oldest_bin] - ages[oldest_bin])
    return EvictionPolicy(time, hour, oldest_bin=oldest_bin, quota=quota)


def rows_too_many(
    max_bytes: int, share: float, rows: int, used_bytes: int, empty_bytes: int = 0
) -> int:
    """How many of `rows` must end for `used_bytes` to fit in `share` (0 to 1) of `max_bytes`;
    0 = no limit.

    A table takes `empty_bytes` without any row. However little that leaves of the limit, rows may
    take half of it: to drop all of them would not make the table fit either.
    """
    if not max_bytes or not rows:
        return 0
    limit = max_bytes * share
    row_bytes = max(1.0, (used_bytes - empty_bytes) / rows)
    return max(0, rows - int(max(limit - empty_bytes, limit / 2) / row_bytes))


def is_too_narrow(max_bytes: int, share: float, empty_bytes: int) -> bool:
    """Whether rows get more than is left for them: half of the limit, see `rows_too_many`."""
    return 0 < max_bytes * share < 2 * empty_bytes


def _hours(life: Lifecycle) -> int:
    """Days in whole hours, at least one."""
    return max(1, round(life.ttl_days * HOURS_PER_DAY)) if life.ttl_days else 0
