"""The public Criteo table to arrays: the loops behind `psrt.data.convert.criteo`.

A row is `label`, 13 integers and 26 categories between tabs; integers and categories may be empty.
The id of a category is a 63-bit hash of (slot, text): stable on every host and in every version,
because saved models depend on it. As in `text`, the last byte must be a newline.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.kernels.jit import device, kernel
from psrt.kernels.lowlevel import mix64
from psrt.kernels.text.text import DONE, NEWLINE, RETURN, ZERO, scan_digits

INTEGERS, CATEGORIES = 13, 26
FIELDS = 1 + INTEGERS + CATEGORIES
MISSING = -(1 << 63)

# Reasons of a stop of `parse_criteo_rows`.
WRONG_FIELDS = 32
BAD_LABEL = 33
BAD_INTEGER = 34

# Cells of `report`.
STATUS, POSITION, ROWS, FIELD = range(4)
REPORT_CELLS = 4

_TAB, _MINUS = 9, 45
_MAX_DIGITS = 18
_FNV_PRIME = np.uint64(0x100000001B3)
FNV_START = np.uint64(0xCBF29CE484222325)


@device
def hash_bytes(text: Any, at: Any, end: Any, start: Any) -> Any:
    """64-bit FNV-1a of `text[at:end]` from a given start (draft-eastlake-fnv)."""
    value = start
    for position in range(at, end):
        value = (value ^ np.uint64(text[position])) * _FNV_PRIME
    return value


@device
def id_of(slot: Any, value: Any) -> Any:
    """63 bits, so that an id is the same number signed and unsigned."""
    return np.int64(mix64(value ^ mix64(np.uint64(slot))) >> np.uint64(1))


@device
def draw_of(text: Any, at: Any, end: Any, seed: Any) -> Any:
    """A number in [0, 1), a function of `text[at:end]` and `seed`."""
    bits = mix64(hash_bytes(text, at, end, FNV_START) ^ mix64(np.uint64(seed)))
    return np.float64(bits >> np.uint64(11)) / np.float64(1 << 53)


@device
def field_end(text: Any, at: Any) -> Any:
    while text[at] != _TAB and text[at] != NEWLINE:
        if text[at] == RETURN and text[at + 1] == NEWLINE:
            break
        at += 1
    return at


@device
def scan_integer(text: Any, at: Any, end: Any) -> Any:
    """Returns (value or MISSING, whether the field is an integer)."""
    if at == end:
        return np.int64(MISSING), True
    start = at + (text[at] == _MINUS)
    value, _, _, stop = scan_digits(text, start, np.uint64(0), 0)
    whole = stop == end and 0 < stop - start <= _MAX_DIGITS
    return (-np.int64(value) if text[at] == _MINUS else np.int64(value)), whole


@device
def count_fields(text: Any, at: Any) -> Any:
    """Returns (fields of the line, position of its end)."""
    fields = 1
    at = field_end(text, at)
    while text[at] == _TAB:
        fields += 1
        at = field_end(text, at + 1)
    return fields, at


@device
def parse_fields(text: Any, at: Any, row: Any, labels: Any, integers: Any, ids: Any) -> Any:
    """Read a line of FIELDS fields; returns (status, field, its position)."""
    end = field_end(text, at)
    label = np.uint8(text[at] - ZERO)
    if end != at + 1 or label > 1:
        return BAD_LABEL, 0, at
    labels[row] = label
    for field in range(1, FIELDS):
        at = end + 1
        end = field_end(text, at)
        if field > INTEGERS:
            slot = field - INTEGERS
            ids[row, slot - 1] = id_of(slot, hash_bytes(text, at, end, FNV_START))
            continue
        integers[row, field - 1], whole = scan_integer(text, at, end)
        if not whole:
            return BAD_INTEGER, field, at
    return DONE, 0, end


@kernel(
    "const u1[::1], i8, u1[::1], i8[:, ::1], i8[:, ::1], f8[::1], i8, i8[::1] -> void",
    group="convert",
)
def parse_criteo_rows(
    text: Any, end: Any, labels: Any, integers: Any, ids: Any, draws: Any, seed: Any, report: Any
) -> None:
    """Read lines from `report[POSITION]` to `end`, at most `len(labels)` of them.

    `labels` (n,), `integers` (n, 13) with MISSING for gaps, `ids` (n, 26 or more), `draws` (n,) =
    a number in [0, 1) that depends on the row's text and `seed` only. `report` comes back with the
    rows read, and on a bad line (row ROWS) with status, field and position; for WRONG_FIELDS,
    FIELD is the number of fields.
    """
    at, row, status, field = report[POSITION], 0, DONE, 0
    while at < end and row < len(labels) and status == DONE:
        fields, stop = count_fields(text, at)
        if fields != FIELDS:
            status, field = WRONG_FIELDS, fields
            break
        status, field, position = parse_fields(text, at, row, labels, integers, ids)
        if status != DONE:
            at = position
            break
        draws[row] = draw_of(text, at, stop, seed)
        row += 1
        at = stop + 1 + (text[stop] == RETURN)
    report[STATUS], report[POSITION], report[ROWS], report[FIELD] = status, at, row, field


@kernel("const i8[:, ::1], i8, i8[:, ::1] -> void", group="convert")
def bucket_integers(integers: Any, first_slot: Any, ids: Any) -> None:
    """`ids` (n, c) = id of (slot, bucket) of `integers` (n, c): MISSING, each value up to 2, and
    ⌊ln² x⌋ above (Juan, Zhuang & Chin, the winners' solution of the Criteo challenge, 2014)."""
    for row in range(integers.shape[0]):
        for column in range(integers.shape[1]):
            bucket = integers[row, column]
            if bucket > 2:
                bucket = 3 + np.int64(np.log(np.float64(bucket)) ** 2)
            ids[row, column] = id_of(first_slot + column, np.uint64(bucket))
