"""Sweeps over all rows of a table, in small slices during training.

A slice holds the lock of one stripe for well under a millisecond, and requests come in between;
between slices `pause` is called. The caller ensures that a table has one sweep at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from psrt.core.types import F32, I64, U8
from psrt.kernels.tables import AGE_BINS, KEPT, REASONS, VERSION_MASK, row_eviction
from psrt.pserver.eviction.policies import Dropped, EvictionPolicy
from psrt.pserver.tables import RowsTable

Pause: TypeAlias = Callable[[], None]

SLICE_ROWS = 8192
_KERNELS = (
    row_eviction.judge,
    row_eviction.decay_,
    row_eviction.count_ages,
    row_eviction.pull_along_,
)


def sweep(
    table: RowsTable,
    policy: EvictionPolicy,
    pause: Pause,
    *,
    decay: float = 1.0,
    dry_run: bool = False,
) -> Dropped:
    """Drop the rows that `policy` selects, after shows and clicks of all are multiplied by `decay`.

    A dry run returns the rows that would be dropped. It works on copies of the rows, so that scores
    equal those of a real sweep to the last bit.
    """
    for kernel in _KERNELS:
        kernel.load()
    layout, score = table.layout, table.spec.score
    row_bytes = table.nbytes // max(1, table.rows)
    time = policy.time & VERSION_MASK
    ended: I64 = np.zeros(len(REASONS), np.int64)

    def decide(rows: F32) -> U8:
        rows = rows.copy() if dry_run else rows
        if decay != 1.0 and layout.show_at >= 0:
            row_eviction.decay_(rows, 0, len(rows), layout.show_at, layout.click_at, decay)
        row_eviction.pull_along_(rows, 0, len(rows), time)
        reasons: U8 = np.empty(len(rows), np.uint8)
        policy.quota = row_eviction.judge(
            *(rows, 0, len(rows), time, policy.ttl_rounds, layout.seen_at),
            *(policy.hour, policy.ttl_hours, layout.show_at, layout.click_at),
            *(score.nonclick_coeff, score.click_coeff, policy.least_score),
            *(policy.oldest_bin, policy.quota, reasons, ended),
        )
        return np.zeros_like(reasons) if dry_run else (reasons != KEPT).view(np.uint8)

    _walk(table, decide, pause)
    dropped = Dropped()
    dropped.add(ended, row_bytes)
    return dropped


def ages(table: RowsTable, time: int, pause: Pause) -> I64:
    """Count all rows by their age at `time`: (AGE_BINS,)."""
    row_eviction.count_ages.load()
    bins: I64 = np.zeros(AGE_BINS, np.int64)

    def decide(rows: F32) -> U8:
        row_eviction.count_ages(rows, 0, len(rows), time & VERSION_MASK, bins)
        return np.zeros(len(rows), np.uint8)

    _walk(table, decide, pause)
    return bins


def _walk(table: RowsTable, decide: Callable[[F32], U8], pause: Pause) -> None:
    _, cursor = table.sweep(0, SLICE_ROWS, decide)
    while cursor:
        pause()
        _, cursor = table.sweep(cursor, SLICE_ROWS, decide)
