"""libsvm text (also svmlight) to MultiSlot text and to batch arrays: the loops behind
`psrt.data.convert.libsvm` and `psrt.data.formats.libsvm`.

A row is `label index:value index:value …`, perhaps with a `# comment`. As in `text`, the last byte
must be a newline. On the way to MultiSlot text, numbers are checked and then copied as they are, so
no digit of a value is lost.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.kernels.jit import device, kernel
from psrt.kernels.text.criteo import draw_of
from psrt.kernels.text.text import (
    DONE,
    NEWLINE,
    RETURN,
    SPACE,
    ZERO,
    scan_digits,
    scan_float,
    skip_blanks,
    write_unsigned,
)

# Reasons of a stop.
BAD_LABEL = 48
BAD_INDEX = 49
NO_COLON = 50
BAD_VALUE = 51

# Cells of `report`; TIES of `parse_libsvm_rows` alone.
STATUS, POSITION, ROWS, LINES, ENTRY, TIES = range(6)
REPORT_CELLS = 6

ROW_BYTES = 64
"""The most a row may be longer in MultiSlot than in libsvm: a label and two counts."""

_COLON, _HASH = 58, 35
_MAX_DIGITS = 18


@device
def is_end(text: Any, at: Any) -> Any:
    """True if no further entry follows."""
    if text[at] == RETURN:
        return text[at + 1] == NEWLINE
    return text[at] == NEWLINE or text[at] == _HASH


@device
def check_label(text: Any, at: Any) -> Any:
    """Returns (label 0 or 1, at, status); −1 and 0 are both the negative class."""
    value, stop, status, _ = scan_float(text, at)
    if status != DONE or (value != 1 and value != 0 and value != -1):
        return 0, at, BAD_LABEL
    return (1 if value == 1 else 0), stop, DONE


@device
def check_entries(text: Any, at: Any) -> Any:
    """Returns (entries of the row, position of the end or of what is wrong, status)."""
    count = 0
    while True:
        at = skip_blanks(text, at)
        if is_end(text, at):
            return count, at, DONE
        _, _, _, stop = scan_digits(text, at, np.uint64(0), 0)
        if stop == at or stop - at > _MAX_DIGITS:
            return count, at, BAD_INDEX
        if text[stop] != _COLON:
            return count, at, NO_COLON
        _, end, status, _ = scan_float(text, stop + 1)
        if status != DONE:
            return count, stop + 1, BAD_VALUE
        count += 1
        at = end


@device
def copy_part(text: Any, at: Any, end: Any, values: Any, out: Any, to: Any) -> Any:
    """Append ` ` and the index, or the value, of every entry in `text[at:end]`; returns `to`."""
    while True:
        at = skip_blanks(text, at)
        if at >= end:
            return to
        out[to] = SPACE
        to += 1
        is_value = False
        while text[at] > SPACE:
            if text[at] == _COLON:
                is_value = True
            elif is_value == values:
                out[to] = text[at]
                to += 1
            at += 1


@device
def write_row(text: Any, at: Any, end: Any, label: Any, count: Any, out: Any, to: Any) -> Any:
    """`1 label`, `n index…`, `n value…` of the entries in `text[at:end]`; returns `to`."""
    out[to] = ZERO + 1
    out[to + 1] = SPACE
    out[to + 2] = ZERO + label
    to += 3
    for values in range(2):
        out[to] = SPACE
        to = write_unsigned(out, to + 1, np.uint64(count))
        to = copy_part(text, at, end, values == 1, out, to)
    out[to] = NEWLINE
    return to + 1


@kernel(
    "const u1[::1], i8, u1[::1], f8[::1], u1[::1], i8[::1], i8, i8[::1] -> void", group="convert"
)
def convert_rows(
    text: Any, end: Any, labels: Any, draws: Any, out: Any, ends: Any, seed: Any, report: Any
) -> None:
    """Convert lines from `report[POSITION]` to `end`, at most `len(labels)` rows.

    `labels` (n,) 0 or 1; `draws` (n,) = a number in [0, 1) that depends on the row's text and
    `seed` only; the line of row i ends at `ends[i]` of `out`, which has a byte per byte of text and
    `ROW_BYTES` per row. Blank lines and comments count as lines only. `report` comes back with rows
    and lines read, and on a bad line with status, position and the entries before the bad one.
    """
    at, row, lines, status, entry, to = report[POSITION], 0, 0, DONE, 0, 0
    while at < end and row < len(labels):
        start = skip_blanks(text, at)
        stop = start
        if not is_end(text, start):
            label, first, status = check_label(text, start)
            if status != DONE:
                at = start
                break
            entry, stop, status = check_entries(text, first)
            if status != DONE:
                at = stop
                break
            to = write_row(text, first, stop, label, entry, out, to)
            draws[row] = draw_of(text, start, stop, seed)
            labels[row], ends[row] = label, to
            row += 1
        while text[stop] != NEWLINE:
            stop += 1
        at = stop + 1
        lines += 1
    report[STATUS], report[POSITION], report[ROWS] = status, at, row
    report[LINES], report[ENTRY] = lines, entry


# --- to batch arrays ------------------------------------------------------------------------------


@device
def note_tie(ties: Any, report: Any, position: Any, index: Any) -> None:
    ties[report[TIES], 0] = position
    ties[report[TIES], 1] = index
    report[TIES] += 1


@device
def parse_label(text: Any, at: Any, binary: Any) -> Any:
    """Returns (label, at, status, tie)."""
    if binary:
        label, stop, status = check_label(text, at)
        return np.float64(label), stop, status, False
    value, stop, status, tie = scan_float(text, at)
    return value, stop, (status if status == DONE else BAD_LABEL), tie


@device
def parse_entries(
    text: Any, at: Any, count: Any, ids: Any, values: Any, ties: Any, report: Any
) -> Any:
    """Append the entries of a row behind the first `count`; returns (count, at, status)."""
    while True:
        at = skip_blanks(text, at)
        if is_end(text, at):
            return count, at, DONE
        index, _, _, stop = scan_digits(text, at, np.uint64(0), 0)
        if stop == at or stop - at > _MAX_DIGITS:
            return count, at, BAD_INDEX
        if text[stop] != _COLON:
            return count, at, NO_COLON
        value, end, status, tie = scan_float(text, stop + 1)
        if status != DONE:
            return count, stop + 1, BAD_VALUE
        if tie:
            note_tie(ties, report, stop + 1, count)
        ids[count], values[count] = np.int64(index), np.float32(value)
        count += 1
        at = end


@kernel(
    "const u1[::1], i8, b1, f4[::1], i8[::1], i8[::1], f4[::1], i8[:, ::1], i8[::1] -> void",
    group="data",
)
def parse_libsvm_rows(
    text: Any,
    end: Any,
    binary: Any,
    labels: Any,
    offsets: Any,
    ids: Any,
    values: Any,
    ties: Any,
    report: Any,
) -> None:
    """Read all lines of `text[:end]`; the caller makes room, a row per newline, an entry per colon.

    `labels` (n,), 0 or 1 when `binary`; entries of row i are `ids` and `values` from `offsets[i]`
    to `offsets[i + 1]`. `ties[i]` = (position, entry, or −1 − row for a label) of a number that 64
    bits cannot round: the caller reads it with `float()`. `report` comes back with the rows, lines
    and ties read, and on a bad line with status, position and the entries of it before the bad one.
    """
    at, row, count, status = 0, 0, 0, DONE
    report[LINES] = report[ENTRY] = report[TIES] = 0
    offsets[0] = 0
    while at < end:
        at = skip_blanks(text, at)
        if not is_end(text, at):
            label, stop, status, tie = parse_label(text, at, binary)
            if status != DONE:
                break
            if tie:
                note_tie(ties, report, at, -1 - row)
            count, at, status = parse_entries(text, stop, count, ids, values, ties, report)
            if status != DONE:
                report[ENTRY] = count - offsets[row]
                break
            labels[row] = np.float32(label)
            row += 1
            offsets[row] = count
        while text[at] != NEWLINE:
            at += 1
        at += 1
        report[LINES] += 1
    report[STATUS], report[POSITION], report[ROWS] = status, at, row
