"""Eviction policies and schedules: which rows a sweep drops is decided before it begins.

An `EvictionPolicy` has the hour and the table's time at the start of the sweep: rows that are
pushed meanwhile are younger and stay. Pure: `psrt.kernels.tables.row_eviction` tests row by row,
stripes drop.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from psrt.core.specs import Lifecycle, SparseTableSpec
from psrt.core.types import I64
from psrt.kernels.tables import AGE_BINS, REASONS

HOURS_PER_DAY = 24
LONGEST_WITHOUT = 1 << 27
"""The longest table time between two sweeps over all rows: ages beyond 2³⁰ would count as none
(`row_eviction.pull_along_`)."""

_NO_BIN = AGE_BINS  # no age falls into it
_EVERY = 8  # an expired row is found within an eighth of its limit


@dataclass
class EvictionPolicy:
    """The limits of one sweep, 0 = none; `time` is the table's (`SparseTable.time`).

    `hour` counts since 1970. All rows older than `oldest_bin` are dropped, and up to `quota` of the
    rows in it; a sweep uses the quota up.
    """

    time: int
    hour: int
    ttl_rounds: int = 0
    ttl_hours: int = 0
    least_score: float = 0.0
    oldest_bin: int = _NO_BIN
    quota: int = 0


@dataclass
class SweepSchedule:
    """Schedule of the sweeps of one table; `time` and `hour` are those of the latest sweep."""

    life: Lifecycle
    time: int = 0
    hour: int = 0

    def is_due(self, time: int, hour: int) -> bool:
        """Return True and count a sweep if an eighth of a limit or LONGEST_WITHOUT has passed."""
        rounds, days = self.life.ttl_rounds, self.life.ttl_days
        longest = max(1, rounds // _EVERY) if rounds else LONGEST_WITHOUT
        by_rounds = time - self.time >= longest
        by_days = days > 0 and hour - self.hour >= max(1, round(days * HOURS_PER_DAY / _EVERY))
        if by_rounds or by_days:
            self.time, self.hour = time, hour
        return by_rounds or by_days


@dataclass
class Dropped:
    """The rows that a sweep has dropped, or would drop, by reason, and their bytes."""

    rows: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REASONS[1:], 0))
    bytes: int = 0

    @property
    def total(self) -> int:
        return sum(self.rows.values())

    def add(self, counts: I64, row_bytes: int) -> None:
        """Add `counts` (5,) of rows by reason; KEPT rows do not count."""
        for reason, count in zip(REASONS[1:], counts[1:].tolist(), strict=True):
            self.rows[reason] += count
            self.bytes += count * row_bytes

    def __iadd__(self, other: Dropped) -> Dropped:
        for reason, count in other.rows.items():
            self.rows[reason] += count
        self.bytes += other.bytes
        return self


def by_age(spec: SparseTableSpec, time: int, hour: int) -> EvictionPolicy:
    """Drop expired rows; the policy of sweeps during training."""
    life = spec.lifecycle or Lifecycle()
    return EvictionPolicy(time, hour, life.ttl_rounds, _hours(life))


def by_shrink(spec: SparseTableSpec, time: int, hour: int) -> EvictionPolicy:
    """Drop expired rows and rows below the least score; the policy of a shrink."""
    life = spec.lifecycle or Lifecycle()
    return EvictionPolicy(time, hour, life.ttl_rounds, _hours(life), life.delete_score)


def by_memory(ages: I64, rows: int, time: int, hour: int) -> EvictionPolicy:
    """Drop the `rows` rows that were pushed longest ago; `ages` (AGE_BINS,) counts rows by age.

    The number is exact. Of the oldest bin that is not dropped as a whole, arbitrary rows go, so the
    order is exact to an eighth of an age.
    """
    if rows <= 0:
        return EvictionPolicy(time, hour)
    older = np.cumsum(ages[::-1])[::-1]  # older[b]: rows in bin b or beyond
    oldest_bin = int(np.flatnonzero(older >= min(rows, int(older[0])))[-1])
    quota = min(rows, int(older[0])) - int(older[oldest_bin] - ages[oldest_bin])
    return EvictionPolicy(time, hour, oldest_bin=oldest_bin, quota=quota)


def rows_too_many(
    max_bytes: int, fraction: float, rows: int, used_bytes: int, empty_bytes: int = 0
) -> int:
    """The number of `rows` to drop for `used_bytes` to fit in `fraction` (0 to 1) of `max_bytes`.

    `max_bytes` = 0 is no limit. A table takes `empty_bytes` without rows. If these leave less than
    half of the limit, rows may still take half of it: to drop all of them would not make the table
    fit either.
    """
    if not max_bytes or not rows:
        return 0
    limit = max_bytes * fraction
    row_bytes = max(1.0, (used_bytes - empty_bytes) / rows)
    return max(0, rows - int(max(limit - empty_bytes, limit / 2) / row_bytes))


def is_too_narrow(max_bytes: int, fraction: float, empty_bytes: int) -> bool:
    """Return True if the limit leaves rows less than half of it; see `rows_too_many`."""
    return 0 < max_bytes * fraction < 2 * empty_bytes


def _hours(life: Lifecycle) -> int:
    """Days in whole hours, at least one."""
    return max(1, round(life.ttl_days * HOURS_PER_DAY)) if life.ttl_days else 0
