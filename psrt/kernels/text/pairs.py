"""Lines of `name:value` to ranges: the values of the names that are wanted.

Like `delimited`, it works on a copy of the text, in which it puts a newline behind each value, and
the last byte must be a newline. Names are compared by a hash of 64 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.kernels.jit import device, kernel
from psrt.kernels.text.criteo import FNV_START, hash_bytes
from psrt.kernels.text.delimited import LINES, POSITION, ROWS, STATUS, at_end
from psrt.kernels.text.text import DONE, NEWLINE, RETURN

# Reasons of a stop of `split_pairs`.
NO_COLON, NO_NAME = 72, 73

# Cells of `report` behind those of `delimited`.
VALUES = 4
REPORT_CELLS = 5

# Columns of `values`, a row for each.
OWNER, ROW, START, STOP = range(4)
VALUE_COLUMNS = 4

_COLON = 58


@device
def hash_of(text: Any, at: Any, stop: Any) -> Any:
    return np.int64(hash_bytes(text, at, stop, FNV_START))


@kernel("const u1[::1], const i8[::1], i8[::1] -> void", group="data")
def hash_names(text: Any, ends: Any, out: Any) -> None:
    """`out` (n,) = the hashes of names that end at `ends` (n,) of `text`, one behind the other."""
    at = 0
    for name in range(len(ends)):
        out[name] = hash_of(text, at, ends[name])
        at = ends[name]


@device
def find_colon(text: Any, at: Any, stop: Any, last: Any) -> Any:
    """The first colon between `at` and `stop`, or the last; `stop` if there is none."""
    found = stop
    for position in range(at, stop):
        if text[position] == _COLON:
            found = position
            if not last:
                return found
    return found


@device
def owner_of(name: Any, names: Any, hint: Any) -> Any:
    """The place of `name` in `names`, searched from `hint` on; -1 if absent."""
    for step in range(len(names)):
        owner = hint + step
        if owner >= len(names):
            owner -= len(names)
        if names[owner] == name:
            return owner
    return -1


@device
def token_end(text: Any, at: Any, delimiter: Any) -> Any:
    while text[at] != delimiter and not at_end(text, at):
        at += 1
    return at


@device
def name_and_value(text: Any, at: Any, stop: Any, colon: Any, value_first: Any) -> Any:
    """The ranges of a word with a colon: (start and stop of the name, start and stop of the
    value)."""
    if value_first:
        return colon + 1, stop, at, colon
    return at, colon, colon + 1, stop


@device
def split_word(
    text: Any, at: Any, stop: Any, value_first: Any, names: Any, bare: Any, place: Any, hint: Any
) -> Any:
    """(field or -1, start and stop of the value, bare words so far, status) of one word."""
    colon = find_colon(text, at, stop, value_first)
    if colon < stop:
        name, name_stop, start, value_stop = name_and_value(text, at, stop, colon, value_first)
        if name == name_stop:
            return -1, at, stop, place, NO_NAME
        owner = owner_of(hash_of(text, name, name_stop), names, hint)
        return owner, start, value_stop, place, DONE
    if place < len(bare):
        return (bare[place] if stop > at else -1), at, stop, place + 1, DONE
    return -1, at, stop, place, (NO_COLON if stop > at else DONE)


@device
def split_line(
    text: Any,
    at: Any,
    delimiter: Any,
    value_first: Any,
    names: Any,
    bare: Any,
    values: Any,
    count: Any,
) -> Any:
    """Append the values of a line to those before `count`; returns (count, position, status)."""
    place, hint = 0, 0
    while True:
        end = token_end(text, at, delimiter)
        ended = at_end(text, end)
        owner, start, stop, place, status = split_word(
            text, at, end, value_first, names, bare, place, hint
        )
        if status != DONE:
            return count, at, status
        if owner >= 0:
            hint = owner
            values[count, OWNER], values[count, START], values[count, STOP] = owner, start, stop
            count += 1
        if stop < end or not ended:
            text[stop] = NEWLINE
        if ended:
            return count, end, DONE
        at = end + 1


@kernel(
    "u1[::1], i8, i8, b1, const i8[::1], const i8[::1], i8[:, ::1], i8[::1], i8[::1] -> void",
    group="data",
)
def split_pairs(
    text: Any,
    end: Any,
    delimiter: Any,
    value_first: Any,
    names: Any,
    bare: Any,
    values: Any,
    lines: Any,
    report: Any,
) -> None:
    """Find the values of lines from `report[POSITION]` to `end`, at most `len(lines)` of them.

    `names` (fields,) are hashes; `bare` (n,) the field of the n-th word without a colon, -1 = none.
    `values` (n, VALUE_COLUMNS) gets field, line and range of each value, and has room for all;
    `lines` (rows,) the lines before each, blank ones included. A line that is none stops the work.
    """
    at, row, count, status = report[POSITION], 0, 0, DONE
    while at < end and row < len(lines):
        if not at_end(text, at):
            first = count
            count, stop, status = split_line(
                text, at, delimiter, value_first, names, bare, values, count
            )
            if status != DONE:
                at, count = stop, first
                break
            values[first:count, ROW] = row
            lines[row] = report[LINES]
            row += 1
            at = stop
        at += 1 + (text[at] == RETURN)
        report[LINES] += 1
    report[STATUS], report[POSITION], report[ROWS], report[VALUES] = status, at, row, count
