"""MultiSlot text to batch arrays and back: the loops behind `psrt.data.multislot`.

One call of `parse_rows` reads as many lines as fit into a batch; reader threads call it without the
GIL. A line is, for each slot in order, `n v1 … vn`. A line is either taken whole or not at all: a
stop names its position, slot and reason, and everything before that line is in place.

Promised by the caller, so that no inner loop tests for the end: `text[end - 1]` is a newline.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from psrt.kernels.jit import device, kernel
from psrt.kernels.text import (
    DONE,
    NEWLINE,
    RETURN,
    SPACE,
    ZERO,
    byte,
    scan_digits,
    scan_float,
    scan_id,
    skip_blanks,
    write_fixed,
    write_unsigned,
)

# Why `parse_rows` stopped; these and the codes of `text` are put in words in `psrt.data.multislot`.
LINE_ENDED = 16
BAD_COUNT = 17
WRONG_COUNT = 18
COUNT_TOO_LARGE = 19
LINE_GOES_ON = 20
SLOT_FULL = 21
TIES_FULL = 22

# Columns of `layout`, one row per slot.
IS_FLOAT, SIZE, BASE, CAPACITY, OFFSETS_ROW = range(5)
LAYOUT_COLUMNS = 5
RAGGED = -1

# Cells of `report`.
STATUS, POSITION, ROWS, LINES, SLOT, VALUE, COUNT, TIES = range(8)
REPORT_CELLS = 8


class Target(NamedTuple):
    """Where values go; see `parse_rows`."""

    layout: Any
    ids: Any
    floats: Any
    offsets: Any
    ties: Any
    report: Any


@device
def note_tie(target: Any, position: Any, index: Any) -> Any:
    count = target.report[TIES]
    if count == len(target.ties):
        return TIES_FULL
    target.ties[count, 0] = position
    target.ties[count, 1] = index
    target.report[TIES] = count + 1
    return DONE


@device
def parse_floats(text: Any, at: Any, start: Any, count: Any, target: Any) -> Any:
    """Read `count` values to `floats[start]`…; returns (at, status)."""
    for index in range(start, start + count):
        at = skip_blanks(text, at)
        number, stop, status, tie = scan_float(text, at)
        if tie:
            status = note_tie(target, at, index)
        if status != DONE:
            target.report[VALUE] = index - start
            return at, status
        target.floats[index] = np.float32(number)
        at = stop
    return at, DONE


@device
def parse_ids(text: Any, at: Any, start: Any, count: Any, target: Any) -> Any:
    """Read `count` values to `ids[start]`…; returns (at, status)."""
    for index in range(start, start + count):
        at = skip_blanks(text, at)
        pattern, stop, status = scan_id(text, at)
        if status != DONE:
            target.report[VALUE] = index - start
            return at, status
        target.ids[index] = np.int64(pattern)
        at = stop
    return at, DONE


@device
def scan_count(text: Any, at: Any, end: Any, size: Any) -> Any:
    """Read the number in front of a slot's values; returns (count, at, status)."""
    digit = np.uint8(byte(text, at) - ZERO)
    if digit <= 9 and byte(text, at + 1) == SPACE and (size == RAGGED or digit == size):
        return np.int64(digit), at + 1, DONE
    count, _, _, stop = scan_digits(text, at, np.uint64(0), 0)
    if stop == at or byte(text, stop) > SPACE:
        return 0, at, BAD_COUNT
    # Each value takes a blank and a digit: a larger count cannot be true, and could overflow.
    if count > np.uint64(end - at):
        return 0, at, COUNT_TOO_LARGE
    if size != RAGGED and count != np.uint64(size):
        return np.int64(count), at, WRONG_COUNT
    return np.int64(count), stop, DONE


@device
def parse_slot(text: Any, at: Any, end: Any, slot: Any, row: Any, target: Any) -> Any:
    """Read one `n v1 … vn`; returns (at, status)."""
    at = skip_blanks(text, at)
    size = target.layout[slot, SIZE]
    count, stop, status = scan_count(text, at, end, size)
    start = row * size
    if status == DONE and size == RAGGED:
        line = target.layout[slot, OFFSETS_ROW]
        start = target.offsets[line, row]
        if start + count > target.layout[slot, CAPACITY]:
            status = SLOT_FULL
        target.offsets[line, row + 1] = start + count
    if status != DONE:
        target.report[VALUE], target.report[COUNT] = -1, count
        return at, status
    start += target.layout[slot, BASE]
    if target.layout[slot, IS_FLOAT]:
        at, status = parse_floats(text, stop, start, count, target)
    else:
        at, status = parse_ids(text, stop, start, count, target)
    if status != DONE:
        target.report[COUNT] = count
    return at, status


@device
def parse_row(text: Any, at: Any, end: Any, row: Any, target: Any) -> Any:
    """Read one line; returns (position of its newline, status)."""
    for slot in range(len(target.layout)):
        at, status = parse_slot(text, at, end, slot, row, target)
        if status != DONE:
            target.report[SLOT] = slot
            at = skip_blanks(text, at)
            ended = byte(text, at) == NEWLINE or byte(text, at) == RETURN
            return at, (LINE_ENDED if ended else status)
    at = skip_blanks(text, at)
    if byte(text, at) == RETURN and byte(text, at + 1) == NEWLINE:
        at += 1
    return at, (DONE if byte(text, at) == NEWLINE else LINE_GOES_ON)


@kernel(
    "const u1[::1], i8, const i8[:, ::1], i8[::1], f4[::1], i8[:, ::1], i8[:, ::1], i8, i8[::1]"
    " -> void",
    group="data",
)
def parse_rows(
    text: Any,
    end: Any,
    layout: Any,
    ids: Any,
    floats: Any,
    offsets: Any,
    ties: Any,
    max_rows: Any,
    report: Any,
) -> None:
    """Read lines of `text` from `report[POSITION]` to `end` until `max_rows` are filled or a stop.

    `layout` (slots, LAYOUT_COLUMNS) places each slot in `ids` or `floats`; `offsets` (ragged slots,
    max_rows + 1). `ties[i]` = (position, index in `floats`) of a number that 64 bits cannot round:
    the caller reads it with `float()`. ROWS, LINES and TIES of `report` go on from what they hold,
    and POSITION moves behind the last whole line; on a bad line it is the offending character, and
    SLOT, VALUE and COUNT say where that lies. Blank lines count as lines only.
    """
    target = Target(layout, ids, floats, offsets, ties, report)
    at, status = report[POSITION], DONE
    while at < end and report[ROWS] < max_rows:
        ties_before = report[TIES]
        start = at
        at = skip_blanks(text, at)
        if byte(text, at) == RETURN and byte(text, at + 1) == NEWLINE:
            at += 1
        if byte(text, at) != NEWLINE:
            at, status = parse_row(text, at, end, report[ROWS], target)
            if status != DONE:
                report[TIES] = ties_before
                at = at if status < SLOT_FULL else start
                break
            report[ROWS] += 1
        report[LINES] += 1
        at += 1
    report[POSITION], report[STATUS] = at, status


@kernel(
    "const u1[::1], const f4[:, ::1], const i8[:, ::1], u1[::1], i8[::1] -> void", group="convert"
)
def format_rows(labels: Any, dense: Any, ids: Any, out: Any, ends: Any) -> None:
    """Rows as lines `1 label`, `d v1 … vd`, then `1 id` per column, the text of row i ends at
    `ends[i]`.

    `labels` (n,), `dense` (n, d) with at most 6 decimals, `ids` (n, s) unsigned 64-bit patterns;
    `out` has `row_bytes(d, s)` per row.
    """
    at = 0
    for row in range(len(labels)):
        out[at] = ZERO + 1
        out[at + 1] = SPACE
        at = write_unsigned(out, at + 2, np.uint64(labels[row]))
        out[at] = SPACE
        at = write_unsigned(out, at + 1, np.uint64(dense.shape[1]))
        for column in range(dense.shape[1]):
            out[at] = SPACE
            at = write_fixed(out, at + 1, np.float64(dense[row, column]))
        for column in range(ids.shape[1]):
            out[at] = SPACE
            out[at + 1] = ZERO + 1
            out[at + 2] = SPACE
            at = write_unsigned(out, at + 3, np.uint64(ids[row, column]))
        out[at] = NEWLINE
        at += 1
        ends[row] = at


def row_bytes(dense: int, ids: int) -> int:
    """The most text one row of `format_rows` can take."""
    return 32 + dense * 24 + ids * 24
