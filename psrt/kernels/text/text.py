"""Numbers in text: the scanners and writers that text kernels are made of.

Unsigned ids keep all 64 bits (negative ones down to −2⁶³ are taken as their own bit pattern).
Floats are the float32 nearest to what Python's `float()` reads. A number must end at a blank or a
line end. Text always ends in a newline, so no loop tests for the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.kernels.jit import device
from psrt.kernels.text.digits import longer_decimal, reaches, short_decimal, short_whole

# Results of a scan.
DONE = 0
BAD_ID = 1
ID_TOO_LARGE = 2
BAD_FLOAT = 3
FLOAT_TOO_LARGE = 4

SPACE, _TAB, NEWLINE, RETURN = 32, 9, 10, 13
_PLUS, _MINUS, _POINT, ZERO, _LOWER_E = 43, 45, 46, 48, 101
_TO_LOWER = 32

_POW10 = np.array([float(f"1e{power}") for power in range(66)])
_FLOAT32_OVERFLOW = 3.4028235677973366e38
# Mantissa, power and product are each off by at most half a unit in 53 bits, and so is float().
_SLACK = 1e-15
_EXACT_MANTISSA = np.uint64(1 << 53)
_MAX_KEPT_DIGITS = 19
_U64_TENTH = np.uint64((1 << 64) // 10)
_INT64_MIN_PATTERN = np.uint64(1 << 63)
# Beyond any exponent that the digits of a number in memory could bring back into range.
_FAR = 1 << 40


@device
def byte(text: Any, at: Any) -> Any:
    """`text[at]` without the test for a negative index, a fifth of the time of all parsing."""
    return text[np.uint64(at)]


@device
def skip_blanks(text: Any, at: Any) -> Any:
    while byte(text, at) == SPACE or byte(text, at) == _TAB:
        at += 1
    return at


@device
def scan_digits(text: Any, at: Any, value: Any, kept: Any) -> Any:
    """Append digits to `value` while it has under 20; returns (value, kept, dropped, at)."""
    dropped = 0
    while True:
        digit = np.uint8(byte(text, at) - ZERO)
        if digit > 9:
            return value, kept, dropped, at
        if kept < _MAX_KEPT_DIGITS:
            value = value * np.uint64(10) + np.uint64(digit)
            kept += value != 0
        else:
            dropped += 1
        at += 1


@device
def scan_long_id(text: Any, at: Any) -> Any:
    """Like `scan_id` for 20 digits or more, which may pass 64 bits."""
    value, _, dropped, at = scan_digits(text, at, np.uint64(0), 0)
    if dropped:
        digit = np.uint64(byte(text, at - 1) - ZERO)
        if dropped > 1 or value > _U64_TENTH or (value == _U64_TENTH and digit > 5):
            return value, ID_TOO_LARGE
        value = value * np.uint64(10) + digit
    return value, DONE


@device
def scan_id(text: Any, at: Any) -> Any:
    """Returns (bit pattern, at, status)."""
    if reaches(text, at):
        value, stop = short_whole(text, at)
        if stop > at:
            return value, stop, DONE
    negative = byte(text, at) == _MINUS
    at += negative
    start, value, status = at, np.uint64(0), DONE
    while True:
        digit = np.uint8(byte(text, at) - ZERO)
        if digit > 9:
            break
        value = value * np.uint64(10) + np.uint64(digit)
        at += 1
    if at == start or byte(text, at) > SPACE:
        return value, at, BAD_ID
    if at - start > _MAX_KEPT_DIGITS:
        value, status = scan_long_id(text, start)
    if negative:
        if value > _INT64_MIN_PATTERN:
            status = ID_TOO_LARGE
        value = np.uint64(0) - value
    return value, at, status


@device
def scan_exponent(text: Any, at: Any) -> Any:
    """`at` is behind the `e`; returns (exponent, at), `at` = -1 when no digit follows."""
    negative = byte(text, at) == _MINUS
    at += negative or byte(text, at) == _PLUS
    start, exponent = at, 0
    while np.uint8(byte(text, at) - ZERO) <= 9:
        exponent = min(exponent * 10 + (byte(text, at) - ZERO), _FAR)
        at += 1
    return (-exponent if negative else exponent), (at if at > start else -1)


@device
def scale_by_power(mantissa: Any, exponent: Any) -> Any:
    if mantissa == 0 or exponent < -65:
        return 0.0
    if exponent > 38:
        return np.inf
    if exponent >= 0:
        return np.float64(mantissa) * _POW10[exponent]
    return np.float64(mantissa) / _POW10[-exponent]


@device
def scan_float(text: Any, at: Any) -> Any:
    """Returns (float64, at, status, tie): `tie` asks for `float()`, see `parse_rows`.

    W. Clinger, "How to read floating point numbers accurately" (1990): with a mantissa under 2⁵³
    and a power up to 10²² one float64 operation is exact to the last bit. Otherwise the result is
    off by a few units, which cannot matter for float32 unless both ends of the doubt round apart.
    """
    if reaches(text, at):
        value, stop = short_decimal(text, at)
        if stop > at:
            return value, stop, DONE, False
    negative = byte(text, at) == _MINUS
    at += negative or byte(text, at) == _PLUS
    if reaches(text, at):
        value, stop = longer_decimal(text, at)
        if stop > at:
            return (-value if negative else value), stop, DONE, False
    start = at
    mantissa, kept, exponent, at = scan_digits(text, at, np.uint64(0), 0)
    whole, dropped = at - start, exponent
    if byte(text, at) == _POINT:
        first = at + 1
        mantissa, kept, lost, at = scan_digits(text, first, mantissa, kept)
        whole += at - first
        exponent -= at - first - lost
        dropped += lost
    if whole and (byte(text, at) | _TO_LOWER) == _LOWER_E:
        shift, at = scan_exponent(text, at + 1)
        exponent += shift
    if whole == 0 or at < 0 or byte(text, at) > SPACE:
        return 0.0, max(at, start), BAD_FLOAT, False
    value = scale_by_power(mantissa, exponent)
    if value * (1 + _SLACK) >= _FLOAT32_OVERFLOW:
        return value, at, FLOAT_TOO_LARGE, False
    exact = not dropped and mantissa <= _EXACT_MANTISSA and -22 <= exponent <= 22
    tie = not exact and np.float32(value * (1 - _SLACK)) != np.float32(value * (1 + _SLACK))
    return (-value if negative else value), at, DONE, tie


@device
def write_unsigned(out: Any, at: Any, value: Any) -> Any:
    """Decimal digits of a uint64; returns the position behind them."""
    end = at + 1
    rest = value // np.uint64(10)
    while rest:
        rest //= np.uint64(10)
        end += 1
    for place in range(end - 1, at - 1, -1):
        rest = value // np.uint64(10)
        out[place] = ZERO + np.uint8(value - rest * np.uint64(10))
        value = rest
    return end


@device
def write_decimal(out: Any, at: Any, number: Any, unit: Any) -> Any:
    """`number / unit`, a power of ten, without trailing zeros; returns the end."""
    whole = number // unit
    fraction = number - whole * unit
    at = write_unsigned(out, at, whole)
    if fraction == 0:
        return at
    # The leading 1 keeps the zeros behind the point; the point then takes its place.
    end = write_unsigned(out, at, fraction + unit)
    out[at] = _POINT
    while out[end - 1] == ZERO:
        end -= 1
    return end


@device
def write_fixed(out: Any, at: Any, value: Any) -> Any:
    """Up to 6 decimals of a float under 10¹³, without trailing zeros; returns the end."""
    scaled = np.uint64(abs(value) * 1e6 + 0.5)
    if value < 0 and scaled:
        out[at] = _MINUS
        at += 1
    return write_decimal(out, at, scaled, np.uint64(1_000_000))
