"""Short numbers in text, eight characters at a time.

A loop over the characters of a number takes a step for each and ends with a branch the processor
cannot guess. Here eight are read as one word, the first that is no digit is found by arithmetic on
all bytes at once, and the digits before it become a number in three multiplications (D. Lemire,
"Quickly parsing eight digits", 2018; the method is older). MultiSlot text of the Criteo shape, one
thread: 640 → 780 MB/s.

What is not short, or not simple, is left to the scanners of `text`: these here say so. Words are
read as a little-endian processor does; on others nothing is short.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.cpython.unsafe import numbers
from numba.extending import intrinsic
from numba.np import arrayobj

from psrt.kernels.jit import device

_fields_of: Any = arrayobj.make_array
_trailing_zeros: Any = numbers.trailing_zeros

_LITTLE_ENDIAN = sys.byteorder == "little"
_ZEROS = np.uint64(0x3030303030303030)
_OVER_NINE = np.uint64(0x7676767676767676)
_HIGH_BITS = np.uint64(0x8080808080808080)
_ONE, _EIGHT, _SIXTY_FOUR = np.uint64(1), np.uint64(8), np.uint64(64)
_POINT = np.uint64(ord(".") ^ ord("0"))
_SPACE = 32
_POW10 = np.array([float(10**power) for power in range(9)])
_POW10_WHOLE = np.array([10**power for power in range(9)], np.uint64)


def _eight_bytes(typing_context: Any, text: Any, at: Any) -> Any:
    """`eight_bytes(text, at)`: bytes `at` … `at` + 7 as a uint64, the first the lowest."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        fields = _fields_of(signature.args[0])(context, builder, args[0])
        address = builder.gep(fields.data, [args[1]])
        word = builder.load(builder.bitcast(address, ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return types.uint64(text, types.int64), generate


eight_bytes: Any = intrinsic(_eight_bytes)


@device
def digit_values(text: Any, at: Any) -> Any:
    """Eight characters, each digit as its value; other characters are over 9."""
    return eight_bytes(text, np.int64(at)) ^ _ZEROS


@device
def digits_at_start(values: Any) -> Any:
    """How many of eight characters are digits before the first that is none.

    A byte over 9 sets its highest bit, and may carry into bytes behind it, which do not count.
    """
    others = ((values + _OVER_NINE) | values) & _HIGH_BITS
    return np.uint64(_trailing_zeros(others)) >> np.uint64(3)


@device
def number_of(values: Any, count: Any) -> Any:
    """The number that the first `count` (1 … 8) of eight digits make."""
    # Zeros in front: the characters behind the digits are pushed out.
    values <<= _SIXTY_FOUR - _EIGHT * count
    values = (values * np.uint64(10) + (values >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    values = (values * np.uint64(100) + (values >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    return (values * np.uint64(10000) + (values >> np.uint64(32))) & np.uint64(0xFFFFFFFF)


@device
def short_whole(text: Any, at: Any) -> Any:
    """A number of 1 to 15 digits that ends at a blank or line end: (value, behind it).

    Behind it is `at` itself where there is no such number, or it lies close to the end of `text`.
    """
    if not _LITTLE_ENDIAN or at + 16 > len(text):
        return np.uint64(0), at
    values = digit_values(text, at)
    count = digits_at_start(values)
    if count == 0:
        return np.uint64(0), at
    value, stop = number_of(values, count), at + np.int64(count)
    if text[np.uint64(stop)] <= _SPACE:
        return value, stop
    if count < 8:
        return value, at
    values = digit_values(text, stop)
    count = digits_at_start(values)
    ended = 0 < count < 8 and text[np.uint64(stop) + count] <= _SPACE
    if not ended:
        return value, at
    return value * _POW10_WHOLE[count] + number_of(values, count), stop + np.int64(count)


@device
def short_decimal(text: Any, at: Any) -> Any:
    """A number without sign or exponent, of up to 8 characters: (float64, behind it).

    The quotient of two exact numbers is the nearest float64. Behind it is `at` itself where there
    is no such number, or it lies close to the end of `text`.
    """
    if not _LITTLE_ENDIAN or at + 9 > len(text):
        return 0.0, at
    values = digit_values(text, at)
    whole = digits_at_start(values)
    shift = _EIGHT * whole
    if whole == 8 or (values >> shift) & np.uint64(0xFF) != _POINT:
        ended = whole > 0 and text[np.uint64(at) + whole] <= _SPACE
        if not ended:
            return 0.0, at
        return np.float64(number_of(values, whole)), at + np.int64(whole)
    # Without the point, the digits behind it follow those before it; what comes in is no digit.
    before = (_ONE << shift) - _ONE
    behind = (values >> _EIGHT) | (np.uint64(0xFF) << np.uint64(56))
    values = (values & before) | (behind & ~before)
    count = digits_at_start(values)
    stop = at + np.int64(count) + 1
    if count == 0 or text[np.uint64(stop)] > _SPACE:
        return 0.0, at
    return np.float64(number_of(values, count)) / _POW10[count - whole], stop
