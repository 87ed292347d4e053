"""Rows that were never trained, as nodes: the initial values of any id, as lookups have them.

The formulas are those of `psrt.kernels.tables.initialize`, in integers of 64 bits: they wrap alike.
ONNX multiplies signed integers and shifts unsigned ones, so numbers are cast between the two.
"""

from __future__ import annotations

import math

import numpy as np

from psrt.core.specs import Constant, Initializer, Normal, TruncatedNormal, Uniform
from psrt.trainer.models.onnx_nodes.table import Drawing

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_FLOAT, _INT64, _DOUBLE, _UINT64 = 1, 7, 11, 13
_BOUND = 2.0
_DRAWS = 8
"""Of a truncated normal number; a cell needs more than these once in 5·10¹⁰ times."""


def initial_rows(d: Drawing, initializer: Initializer, seed: int, width: int, ids: str) -> str:
    """Add nodes for rows (…, width) float32 of `ids` (…) int64; returns the name of the rows."""
    keys = d.node("BitwiseXor", (ids, d.ints(_signed(_mixed(seed & _MASK)))))
    rows = d.node("Unsqueeze", (_mix(d, keys), d.ints(-1)))
    steps = d.ints(*(_signed((column + 1) * _GOLDEN) for column in range(width)))
    bits = _mix(d, d.node("Add", (rows, steps)))
    match initializer:
        case Uniform(low, high):
            return _uniform(d, bits, low, high)
        case Normal(mean, std):
            return _scaled(d, _standard_normal(d, bits), mean, std)
        case TruncatedNormal(mean, std):
            return _scaled(d, _truncated(d, bits), mean, std)
        case Constant(value):
            zeros = d.node("Mul", (_cast(d, bits, _FLOAT), d.number(0.0)))
            return d.node("Add", (zeros, d.number(value)))


def _uniform(d: Drawing, bits: str, low: float, high: float) -> str:
    upper = d.node("BitShift", (_cast(d, bits, _UINT64), _unsigned(d, 40)), direction="RIGHT")
    fraction = d.node("Mul", (_cast(d, upper, _FLOAT), d.number(2.0**-24)))
    width = float(np.float32(high) - np.float32(low))
    return d.node("Add", (d.node("Mul", (fraction, d.number(width))), d.number(low)))


def _standard_normal(d: Drawing, bits: str) -> str:
    whole = _cast(d, bits, _UINT64)
    upper = d.node("BitShift", (whole, _unsigned(d, 32)), direction="RIGHT")
    lower = d.node("BitwiseAnd", (whole, _unsigned(d, 0xFFFFFFFF)))
    first, second = (_cast(d, part, _DOUBLE) for part in (upper, lower))
    unit, one = d.number(2.0**-32, "float64"), d.number(1.0, "float64")
    inside = d.node("Mul", (d.node("Add", (first, one)), unit))
    logarithm = d.node("Log", (inside,))
    radius = d.node("Sqrt", (d.node("Mul", (logarithm, d.number(-2.0, "float64"))),))
    angle = d.node("Mul", (second, d.number(2.0**-31 * math.pi, "float64")))
    return d.node("Mul", (radius, d.node("Cos", (angle,))))


def _truncated(d: Drawing, bits: str) -> str:
    """Draw again where a number is beyond the bound: the first draw within it counts."""
    draws = [_standard_normal(d, bits)]
    for _ in range(_DRAWS - 1):
        bits = _mix(d, d.node("Add", (bits, d.ints(_signed(_GOLDEN)))))
        draws.append(_standard_normal(d, bits))
    number = draws.pop()
    for drawn in reversed(draws):
        beyond = d.node("Greater", (d.node("Abs", (drawn,)), d.number(_BOUND, "float64")))
        number = d.node("Where", (beyond, number, drawn))
    return number


def _scaled(d: Drawing, number: str, mean: float, std: float) -> str:
    factor, shift = (d.number(float(np.float32(x)), "float64") for x in (std, mean))
    return _cast(d, d.node("Add", (d.node("Mul", (number, factor)), shift)), _FLOAT)


def _mix(d: Drawing, x: str) -> str:
    """`psrt.kernels.lowlevel.mix64` of int64 patterns."""
    for shift, factor in _STEPS:
        x = d.node("Mul", (_cast(d, _folded(d, x, shift), _INT64), d.ints(_signed(factor))))
    return _cast(d, _folded(d, x, 31), _INT64)


def _folded(d: Drawing, x: str, shift: int) -> str:
    """x ^ (x >> shift), unsigned."""
    whole = _cast(d, x, _UINT64)
    shifted = d.node("BitShift", (whole, _unsigned(d, shift)), direction="RIGHT")
    return d.node("BitwiseXor", (whole, shifted))


def _mixed(x: int) -> int:
    """`mix64` of a constant."""
    for shift, factor in _STEPS:
        x = ((x ^ (x >> shift)) * factor) & _MASK
    return x ^ (x >> 31)


def _signed(x: int) -> int:
    x &= _MASK
    return x - (1 << 64) if x >> 63 else x


def _unsigned(d: Drawing, value: int) -> str:
    return d.constant(np.array([value], np.uint64))


def _cast(d: Drawing, x: str, to: int) -> str:
    return d.node("Cast", (x,), to=to)
