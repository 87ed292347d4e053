"""Arrays to MultiSlot lines: rows of labels, floats and ids, or any slots one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.kernels.jit import device, kernel
from psrt.kernels.text.text import NEWLINE, SPACE, ZERO, write_decimal, write_fixed, write_unsigned

VALUE_BYTES = 24
"""The most text that a count or a value of a slot takes, with the blank behind it."""

_EXPONENT, _MINUS = 101, 45
_MAX_FIXED = 1e9
_FEWEST_DIGITS, _DIGITS = 7, 9
_MAX_PLACES = 12
_SLACK = 1e-14  # of powers of ten in float64


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


@device
def shortened(size: Any) -> Any:
    """Returns (mantissa, exponent) of 7 to 9 digits that give the float32 `size` > 0 again; 9 do
    for each (IEEE 754, binary32)."""
    magnitude = np.int64(np.floor(np.log10(size)))
    for digits in range(_FEWEST_DIGITS, _DIGITS):
        exponent = magnitude - (digits - 1)
        mantissa = np.floor(size * 10.0 ** np.float64(-exponent) + 0.5)
        number = mantissa / 10.0 ** np.float64(-exponent)
        low, high = np.float32(number * (1 - _SLACK)), np.float32(number * (1 + _SLACK))
        if low == np.float32(size) == high:
            return np.uint64(mantissa), exponent
    exponent = magnitude - (_DIGITS - 1)
    return np.uint64(size * 10.0 ** np.float64(-exponent) + 0.5), exponent


@device
def write_float32(out: Any, at: Any, value: Any) -> Any:
    """A finite float32 so that reading it gives its bits, with as few digits as that takes, or up
    to 6 decimals; returns the end."""
    number = np.float64(value)
    size = abs(number)
    if size < _MAX_FIXED and np.float32(np.uint64(size * 1e6 + 0.5) / 1e6) == np.float32(size):
        return write_fixed(out, at, number)
    if number < 0:
        out[at] = _MINUS
        at += 1
    mantissa, exponent = shortened(size)
    if -_MAX_PLACES <= exponent <= 0:
        unit = np.uint64(1)
        for _ in range(-exponent):
            unit *= np.uint64(10)
        return write_decimal(out, at, mantissa, unit)
    while mantissa % np.uint64(10) == 0:
        mantissa //= np.uint64(10)
        exponent += 1
    at = write_unsigned(out, at, mantissa)
    out[at] = _EXPONENT
    at += 1
    if exponent < 0:
        out[at] = _MINUS
        at += 1
    return write_unsigned(out, at, np.uint64(abs(exponent)))


@kernel("const i8[::1], const i8[::1], u1[::1], i8[::1] -> void", group="convert")
def append_ids(ids: Any, offsets: Any, out: Any, ends: Any) -> None:
    """Append `n id1 … idn ` to each line, `ids[offsets[i] : offsets[i + 1]]` to line i.

    Ids are unsigned 64-bit patterns. Line i ends at `ends[i]` of `out`, which is moved on; each
    number needs `VALUE_BYTES`.
    """
    for row in range(len(ends)):
        start, stop = offsets[row], offsets[row + 1]
        at = write_unsigned(out, ends[row], np.uint64(stop - start))
        out[at] = SPACE
        at += 1
        for place in range(start, stop):
            at = write_unsigned(out, at, np.uint64(ids[place]))
            out[at] = SPACE
            at += 1
        ends[row] = at


@kernel("const f4[::1], const i8[::1], u1[::1], i8[::1] -> void", group="convert")
def append_floats(values: Any, offsets: Any, out: Any, ends: Any) -> None:
    """Append `n v1 … vn ` to each line, see `append_ids`; `values` are finite."""
    for row in range(len(ends)):
        start, stop = offsets[row], offsets[row + 1]
        at = write_unsigned(out, ends[row], np.uint64(stop - start))
        out[at] = SPACE
        at += 1
        for place in range(start, stop):
            at = write_float32(out, at, values[place])
            out[at] = SPACE
            at += 1
        ends[row] = at
