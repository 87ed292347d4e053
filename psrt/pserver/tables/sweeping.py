"""Going through all rows of a table to drop those at their end, in small slices beside training.

Requests come in between two slices, each of which holds the lock of one stripe for well under a
millisecond; between slices `pause` is called. One sweep of a table at a time: the caller sees to
that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from psrt.core.types import F32, I64, U8
from psrt.kernels.tables import AGE_BINS, KEPT, REASONS, VERSION_MASK, row_eviction
from psrt.pserver.tables.lifecycle import Dropped, EvictionPolicy
from psrt.pserver.tables.two_part_table import RowsTable

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
    sentence: EvictionPolicy,
    pause: Pause,
    *,
    decay: float = 1.0,
    dry_run: bool = False,
) -> Dropped:
    """Drop the rows that `sentence` says; shows and clicks of all are multiplied by `decay` before.

    A dry run tells what would be dropped: it does all of it to copies of the rows, so that scores
    are those of a real one to the last bit.
    """
    for kernel in _KERNELS:
        kernel.load()
    layout, score = table.layout, table.spec.score
    row_bytes = table.nbytes // max(1, table.rows)
    time = sentence.time & VERSION_MASK
    ended: I64 = np.zeros(len(REASONS), np.int64)

    def decide(rows: F32) -> U8:
        rows = rows.copy() if dry_run else rows
        if decay != 1.0 and layout.show_at >= 0:
            row_eviction.decay_(rows, 0, len(rows), layout.show_at, layout.click_at, decay)
        row_eviction.pull_along_(rows, 0, len(rows), time)
        reasons: U8 = np.empty(len(rows), np.uint8)
        sentence.quota = row_eviction.judge(
            *(rows, 0, len(rows), time, sentence.ttl_rounds, layout.seen_at),
            *(sentence.hour, sentence.ttl_hours, layout.show_at, layout.click_at),
            *(score.nonclick_coeff, score.click_coeff, sentence.least_score),
            *(sentence.oldest_bin, sentence.quota, reasons, ended),
        )
        return np.zeros_like(reasons) if dry_run else (reasons != KEPT).view(np.uint8)

    _walk(table, decide, pause)
    dropped = Dropped()
    dropped.add(ended, row_bytes)
    return dropped


def ages(table: RowsTable, time: int, pause: Pause) -> I64:
    """All rows (AGE_BINS,) by their age at `time`."""
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
