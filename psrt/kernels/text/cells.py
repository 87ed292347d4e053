"""Values in ranges of a text to numbers and hashes: the loops behind `psrt.data.formats.cells`.

A range ends at a newline, except those that are only hashed. A range is read whole or refused: a
stop names the value and the reason.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.kernels.jit import device, kernel
from psrt.kernels.text.criteo import FNV_START, hash_bytes, id_of, scan_integer
from psrt.kernels.text.text import BAD_FLOAT, BAD_ID, DONE, SPACE, scan_float, scan_id

# Reasons of a stop, besides the codes of `text`.
NO_VALUE = 67

# Cells of `report`.
STATUS, VALUE, TIES = range(3)
REPORT_CELLS = 3

_TAB = 9


@device
def trimmed(text: Any, at: Any, stop: Any) -> Any:
    """The position of the first character that is no blank, at most `stop`."""
    while at < stop and (text[at] == SPACE or text[at] == _TAB):
        at += 1
    return at


@kernel("const u1[::1], i8[::1], i8[::1], f8, f8[::1], i8[::1], i8[::1] -> void", group="data")
def read_floats(
    text: Any, starts: Any, stops: Any, missing: Any, out: Any, ties: Any, report: Any
) -> None:
    """`out` (n,) = the numbers in the ranges; an empty one is `missing`, or stops the work if that
    is nan. `ties` (n,) gets the values that the caller has to read with `float()`."""
    report[STATUS] = DONE
    report[TIES] = 0
    for value in range(len(starts)):
        at = trimmed(text, starts[value], stops[value])
        if at == stops[value]:
            out[value] = missing
            if np.isnan(missing):
                report[STATUS], report[VALUE] = NO_VALUE, value
                return
            continue
        number, stop, status, tie = scan_float(text, at)
        if status == DONE and trimmed(text, stop, stops[value]) < stops[value]:
            status = BAD_FLOAT
        if status != DONE:
            report[STATUS], report[VALUE] = status, value
            return
        if tie:
            ties[report[TIES]] = value
            report[TIES] += 1
        out[value] = number


@kernel("const u1[::1], i8[::1], i8[::1], b1, i8, i8[::1], i8[::1] -> void", group="data")
def read_ids(
    text: Any, starts: Any, stops: Any, refuse: Any, missing: Any, out: Any, report: Any
) -> None:
    """`out` (n,) = the 64-bit patterns of the unsigned integers in the ranges; an empty one is
    `missing`, or stops the work if `refuse`."""
    report[STATUS] = DONE
    for value in range(len(starts)):
        at = trimmed(text, starts[value], stops[value])
        if at == stops[value]:
            out[value] = missing
            if refuse:
                report[STATUS], report[VALUE] = NO_VALUE, value
                return
            continue
        pattern, stop, status = scan_id(text, at)
        if status == DONE and trimmed(text, stop, stops[value]) < stops[value]:
            status = BAD_ID
        if status != DONE:
            report[STATUS], report[VALUE] = status, value
            return
        out[value] = np.int64(pattern)


@kernel("const u1[::1], i8[::1], i8[::1], i8[::1], i8[::1] -> void", group="data")
def read_integers(text: Any, starts: Any, stops: Any, out: Any, report: Any) -> None:
    """`out` (n,) = the integers of up to 18 digits in the ranges, MISSING for an empty one."""
    report[STATUS] = DONE
    for value in range(len(starts)):
        number, whole = scan_integer(text, starts[value], stops[value])
        if not whole:
            report[STATUS], report[VALUE] = BAD_ID, value
            return
        out[value] = number


@kernel("const u1[::1], const i8[::1], const i8[::1], i8, i8[::1] -> void", group="data")
def hash_texts(text: Any, starts: Any, stops: Any, salt: Any, out: Any) -> None:
    """`out` (n,) = 63-bit hashes of (salt, bytes of the range), those of
    `psrt.data.convert.criteo`."""
    for value in range(len(starts)):
        out[value] = id_of(salt, hash_bytes(text, starts[value], stops[value], FNV_START))
