"""Short numbers in text, eight characters at a time.

A loop over the characters of a number takes a step for each and ends with a branch the processor
cannot guess. Here eight are read as one word, the first that is no digit is found by arithmetic on
all bytes at once, and the digits before it become a number in three multiplications (D. Lemire,
"Quickly parsing eight digits", 2018; the method is older).

Numbers that are not short, or not simple, are left to the scanners of `text`. Words are read as a
little-endian processor does; on others nothing is short. Callers make sure that
`REACH` characters follow the start of a number (`reaches`).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numba.cpython.unsafe import numbers

from psrt.kernels.jit import device
from psrt.kernels.lowlevel import eight_bytes

_trailing_zeros: Any = numbers.trailing_zeros

_LITTLE_ENDIAN = sys.byteorder == "little"
_ZEROS = np.uint64(0x3030303030303030)
_OVER_NINE = np.uint64(0x7676767676767676)
_HIGH_BITS = np.uint64(0x8080808080808080)
_ONE, _EIGHT, _SIXTY_FOUR = np.uint64(1), np.uint64(8), np.uint64(64)
_BYTE = np.uint64(0xFF)
_POINTS = np.uint64(0x1E1E1E1E1E1E1E1E)  # "." ^ "0"
_ONES = np.uint64(0x0101010101010101)
_UP_TO_SPACE = np.uint64(0x2121212121212121)
_MINUS = np.uint64(ord("-"))
_SPACE, _POINT = 32, ord(".")
REACH = 32
_TEN_THOUSAND = np.uint64(10_000)
_POW10 = np.array([float(10**power) for power in range(9)])
_POW10_WHOLE = np.array([10**power for power in range(9)], np.uint64)


@device
def digit_values(text: Any, at: Any) -> Any:
    """Eight characters, each digit as its value; other characters are over 9."""
    return eight_bytes(text, np.int64(at)) ^ _ZEROS


@device
def digits_at_start(values: Any) -> Any:
    """The number of digits before the first of eight characters that is none.

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
def reaches(text: Any, at: Any) -> Any:
    """True if a number at `at` can be read eight characters at a time."""
    return _LITTLE_ENDIAN and at + REACH <= len(text)


@device
def short_whole(text: Any, at: Any) -> Any:
    """A number of 1 to 20 digits that ends at a blank or line end: (value, behind it).

    Behind it is `at` itself where there is no such number of 64 bits.
    """
    values = digit_values(text, at)
    count = digits_at_start(values)
    if count == 0:
        return np.uint64(0), at
    value, stop = number_of(values, count), at + np.int64(count)
    if text[np.uint64(stop)] <= _SPACE:
        return value, stop
    if count < 8:
        return value, at
    value, stop, count = append_digits(text, stop, value)
    if count == 8 and text[np.uint64(stop)] > _SPACE:
        sixteen = value
        value, stop, count = append_digits(text, stop, value)
        if count > 4 or (count == 4 and value // _TEN_THOUSAND != sixteen):
            return value, at
    ended = text[np.uint64(stop)] <= _SPACE
    return value, (stop if ended else at)


@device
def append_digits(text: Any, at: Any, value: Any) -> Any:
    """Up to eight more digits behind `value`: (the number modulo 2⁶⁴, behind it, how many)."""
    values = digit_values(text, at)
    count = digits_at_start(values)
    if count > 0:
        value = value * _POW10_WHOLE[count] + number_of(values, count)
    return value, at + np.int64(count), count


@device
def first_marked(marks: Any) -> Any:
    """8 × the place of the first of eight bytes with its highest bit set, 64 if there is none."""
    return np.uint64(_trailing_zeros(marks)) & ~np.uint64(7)


@device
def short_decimal(text: Any, at: Any) -> Any:
    """A number without exponent, of up to 8 characters with its sign: (float64, behind it).

    The quotient of two exact numbers is the nearest float64. Behind it is `at` itself where there
    is no such number. Where it ends is found first, by the blank alone: the processor goes on to
    the next number while it computes this one.
    """
    word = eight_bytes(text, np.int64(at))
    bits = first_marked((word - _UP_TO_SPACE) & ~word & _HIGH_BITS)
    stop = at + np.int64(bits >> np.uint64(3))
    if bits == 64 and text[np.uint64(stop)] > _SPACE:
        return 0.0, at
    sign = _EIGHT * np.uint64(word & _BYTE == _MINUS)
    values, bits = (word >> sign) ^ _ZEROS, bits - sign
    to_point = values ^ _POINTS
    point, decimals = first_marked((to_point - _ONES) & ~to_point & _HIGH_BITS), np.uint64(0)
    if point < bits:
        # Without the point, the digits behind it follow those before it.
        before = (_ONE << point) - _ONE
        values = (values & before) | ((values >> _EIGHT) & ~before)
        bits -= _EIGHT
        decimals = (bits - point) >> np.uint64(3)
    count = bits >> np.uint64(3)
    if count == 0 or digits_at_start(values) < count:
        return 0.0, at
    number = np.float64(number_of(values, count)) / _POW10[decimals]
    return (-number if sign else number), stop


@device
def longer_decimal(text: Any, at: Any) -> Any:
    """Up to 7 digits, a point and up to 8 digits: (float64, behind it), as `short_decimal`."""
    values = digit_values(text, at)
    count = digits_at_start(values)
    point = at + np.int64(count)
    if count == 0 or count == 8 or text[np.uint64(point)] != _POINT:
        return 0.0, at
    mantissa, stop, decimals = append_digits(text, point + 1, number_of(values, count))
    ended = decimals > 0 and text[np.uint64(stop)] <= _SPACE
    return np.float64(mantissa) / _POW10[decimals], (stop if ended else at)
