"""The header of a row, and device functions that loops over rows share.

The header's words are read as int32 through a view of the row's memory: word 0 is the version of
the table that touched the row last, word 1 counts the updates of this row. It is written before an
update kernel runs (`stamp_`, `tables.row_access.touch_`), so the count is the t of that update.
"""

from __future__ import annotations

import numpy as np

from psrt.core.types import F32, I32
from psrt.kernels.jit import device, kernel
from psrt.kernels.lowlevel import AHEAD, prefetch_row

HEADER_WORDS = 2
VERSION_WORD = 0
UPDATES_WORD = 1


@device
def fetch_ahead(weights: F32, state: F32, slots: I32, k: int) -> None:
    """Fetch the row that this loop reaches `AHEAD` iterations later (13,312 rows of 16 by Adam:
    340 to 250 µs, although the loop that wrote the headers has just read them)."""
    if k + AHEAD < len(slots):
        prefetch_row(weights, int(slots[k + AHEAD]))
        prefetch_row(state, int(slots[k + AHEAD]))


@kernel("const f4[:, ::1], f4[:, ::1], const i4[::1], i8 -> void", group="trainer")
def stamp_(weights: F32, state: F32, slots: I32, version: int) -> None:
    """Write the headers of rows that are about to be updated."""
    headers = state.view(np.int32)
    for k in range(len(slots)):
        fetch_ahead(weights, state, slots, k)
        headers[slots[k], VERSION_WORD] = version
        headers[slots[k], UPDATES_WORD] += 1


@device
def line_of(corrections: F32, headers: I32, slot: int) -> int:
    """The line of a table of bias corrections for the update under way of a row."""
    line: int = min(headers[slot, UPDATES_WORD], len(corrections)) - 1
    return line


@device
def is_resting(headers: I32, slot: int, version: int) -> bool:
    """True if a row was updated before, but not by the update that made `version`."""
    rests: bool = headers[slot, UPDATES_WORD] > 0 and headers[slot, VERSION_WORD] != version
    return rests
