"""Records of examples kept in memory: values of batches in, batches of any records out.

All values of a record are contiguous in `words`, 4 bytes each: slot after slot, an id takes two
words and a float one. A random record then costs a few cache lines in a row; with an array for each
slot it would cost one miss a slot. Records begin at `starts` (n + 1), or, where all slots are
dense, each `stride` words. `counts` (n, ragged slots, width) is the number of values of each ragged
slot, as little-endian numbers of `width` bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.core.types import I64, U8, U32
from psrt.kernels.jit import device, kernel
from psrt.kernels.lowlevel import AHEAD, LINE_BYTES, prefetch

# Columns of `layout`, one row per slot; SIZE of a ragged slot is RAGGED, and COUNTS its place in
# `counts` and `offsets`.
WORDS, SIZE, COUNTS = range(3)
LAYOUT_COLUMNS = 3
RAGGED = -1

WORD_BYTES = 4
_LINE_WORDS = LINE_BYTES // WORD_BYTES
_MOST_WORDS = 16 * _LINE_WORDS
BLOCK_ROWS = 64


@device
def count_at(counts: U8, row: int, slot: int) -> Any:
    first = np.uint64(row)
    number = np.int64(counts[first, slot, 0])
    for place in range(1, counts.shape[2]):
        number |= np.int64(counts[first, slot, place]) << (8 * place)
    return number


@device
def copy_words(source: U32, at: int, out: U32, to: int, count: int) -> None:
    """One word or two, most of all slots, without the start of a loop."""
    # Unsigned, so that nothing tests for negative indices.
    first, target = np.uint64(at), np.uint64(to)
    if count == 1:
        out[target] = source[first]
    elif count == 2:
        out[target] = source[first]
        out[target + np.uint64(1)] = source[first + np.uint64(1)]
    else:
        for word in range(np.uint64(count)):
            out[target + word] = source[first + word]


@device
def ask_for(words: U32, starts: I64, stride: int, rows: I64, i: int) -> None:
    """Name the memory of the record that is due `AHEAD` iterations later."""
    if len(starts) == 0:
        if i + AHEAD < len(rows):
            ask_for_words(words, rows[i + AHEAD] * stride, stride)
        return
    if i + 2 * AHEAD < len(rows):
        prefetch(starts, rows[i + 2 * AHEAD], 0)
    if i + AHEAD < len(rows):
        row = rows[i + AHEAD]
        ask_for_words(words, starts[row], starts[row + 1] - starts[row])


@device
def ask_for_words(words: U32, at: int, count: int) -> None:
    for word in range(0, min(count + _LINE_WORDS - 1, _MOST_WORDS), _LINE_WORDS):
        prefetch(words, at + word, 0)


@kernel("const u4[::1], const i8[::1], i8, i8[::1], u4[::1] -> void", group="data")
def append_slot(values: U32, offsets: I64, width: int, ends: I64, words: U32) -> None:
    """Put one slot's values behind what each record has in `words` so far: `ends` (n,) moves on.

    `values` are words, `width` of them a record, or a value where `offsets` (n + 1) is not empty.
    """
    for row in range(len(ends)):
        at, count = row * width, width
        if len(offsets):
            at, count = offsets[row] * width, (offsets[row + 1] - offsets[row]) * width
        copy_words(values, at, words, ends[row], count)
        ends[row] += count


@kernel("const u1[:, :, ::1], const i8[::1], const b1[::1], i8[:, ::1] -> void", group="data")
def count_values(counts: U8, rows: I64, wanted: Any, offsets: I64) -> None:
    """`offsets` (ragged slots, n + 1) of the records `rows` (n,), for the slots that are wanted.

    `offsets[:, 0]` is 0 already.
    """
    for i in range(len(rows)):
        if i + AHEAD < len(rows):
            prefetch(counts, rows[i + AHEAD], 0)
        for slot in range(len(offsets)):
            if wanted[slot]:
                offsets[slot, i + 1] = offsets[slot, i] + count_at(counts, rows[i], slot)


@device
def begin_block(words: U32, starts: I64, stride: int, rows: I64, at: I64, first: int) -> int:
    """`at`: where records `rows[first:]` begin, as many as it has room for; returns how many."""
    count = min(len(at), len(rows) - first)
    for i in range(first, first + count):
        ask_for(words, starts, stride, rows, i)
        at[i - first] = starts[rows[i]] if len(starts) else rows[i] * stride
    return count


@kernel(
    "const u4[::1], const i8[::1], i8, const u1[:, :, ::1], const i8[::1], const i8[:, ::1],"
    " const b1[::1], const i8[::1], const i8[:, ::1], i8[::1], u4[::1] -> void",
    group="data",
)
def gather(
    words: U32,
    starts: I64,
    stride: int,
    counts: U8,
    rows: I64,
    layout: I64,
    wanted: Any,
    bases: I64,
    offsets: I64,
    at: I64,
    out: U32,
) -> None:
    """The records `rows` (n,), slot by slot: slot s from word `bases[s]` of `out` on.

    Slots that are not `wanted` (slots,) are left as they are. `offsets` are those of
    `count_values`. Records are taken a block at a time, as many as `at` (scratch) has room for:
    they stay in the cache while slot after slot of them is copied.
    """
    first = 0
    while first < len(rows):
        block = begin_block(words, starts, stride, rows, at, first)
        for slot in range(len(layout)):
            width, size, line = layout[slot, WORDS], layout[slot, SIZE], layout[slot, COUNTS]
            to, count = bases[slot] + first * size * width, size * width
            if size == RAGGED and wanted[slot]:
                to = bases[slot] + offsets[line, first] * width
            for i in range(block):
                if size == RAGGED:
                    count = count_at(counts, rows[first + i], line) * width
                if wanted[slot]:
                    copy_words(words, at[i], out, to, count)
                at[i] += count
                to += count
        first += block


@kernel("const u4[::1], const i8[::1], i8, const i8[::1], u4[::1] -> void", group="data")
def copy_records(words: U32, starts: I64, stride: int, rows: I64, out: U32) -> None:
    """The records `rows` (n,) as they are, one behind the other."""
    to = 0
    for i in range(len(rows)):
        ask_for(words, starts, stride, rows, i)
        row, at, count = rows[i], rows[i] * stride, stride
        if len(starts):
            at, count = starts[row], starts[row + 1] - starts[row]
        copy_words(words, at, out, to, count)
        to += count
