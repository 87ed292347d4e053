"""Initial values of parameters: pure functions of (seed, key, column).

Trainers, pservers and restored jobs compute it independently and agree to the bit: random bits are
counter-based (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3", with SplitMix64 as
the mixer), and the logarithm and cosine of Box–Muller are written out in IEEE operations, because
libm and vector libraries differ between hosts in the last bit.

Dense parameters use key = element index and column 0, so that a value does not depend on how the
parameter was sliced; sparse rows use key = id.
"""

from __future__ import annotations

import math

import numpy as np

from psrt.core.specs import Constant, Initializer, Normal, TruncatedNormal, Uniform
from psrt.core.types import F32, I64
from psrt.kernels.jit import device, kernel
from psrt.kernels.lowlevel import mix64

CONSTANT = 0
UNIFORM = 1
NORMAL = 2
TRUNCATED_NORMAL = 3
_BOUND = 2.0

_GOLDEN = 0x9E3779B97F4A7C15  # 2⁶⁴ / golden ratio: the increment of SplitMix64
_LN2 = math.log(2.0)
_SQRT_HALF_BITS = int(np.float64(math.sqrt(0.5)).view(np.int64))
# Horner order, highest power first: ln((1 + s) / (1 − s)) = s · Σ 2 (s²)ᵏ / (2k + 1) and
# sin θ = θ · Σ (−θ²)ᵏ / (2k + 1)!, both good to 1e-13 on the reduced ranges below.
_LOG_TERMS = tuple(2.0 / (2 * k + 1) for k in range(9, -1, -1))
_SIN_TERMS = tuple((-1.0) ** k / math.factorial(2 * k + 1) for k in range(9, -1, -1))


@device
def row_bits(seed: int, key: int) -> np.uint64:
    """The part of `random_bits` that all columns of a row share."""
    return mix64(mix64(np.uint64(seed)) ^ np.uint64(key))


@device
def random_bits(row: np.uint64, column: int) -> np.uint64:
    """64 random bits for one cell: SplitMix64's output number `column` of a generator at `row`."""
    return mix64(row + (np.uint64(column) + np.uint64(1)) * np.uint64(_GOLDEN))


@device
def portable_log(x: float) -> float:
    """ln x for normal finite x > 0, the same bits on every host."""
    bits = np.float64(x).view(np.int64)
    # Split x at √½: the bits of √½ are subtracted, so that what is left of the exponent field is
    # the power of two of x / [√½, √2).
    exponent = (bits - _SQRT_HALF_BITS) >> 52
    mantissa = np.int64(bits - (exponent << 52)).view(np.float64)
    s = (mantissa - 1.0) / (mantissa + 1.0)
    total = 0.0
    for term in _LOG_TERMS:
        total = total * (s * s) + term
    return s * total + np.float64(exponent) * _LN2


@device
def portable_cos_turns(turns: float) -> float:
    """cos(2π · turns) for turns in [0, 1), the same bits on every host."""
    # cos(2π·t) = sin(2π·(¼ − t)) on the half circle, and the other half mirrors it.
    theta = (0.25 - min(turns, 1.0 - turns)) * (2.0 * math.pi)
    total = 0.0
    for term in _SIN_TERMS:
        total = total * (theta * theta) + term
    return theta * total


@device
def uniform(bits: np.uint64, low: float, high: float) -> np.float32:
    """`low` ≤ result ≤ `high`, from the upper 24 bits."""
    fraction = np.float32(np.int32(bits >> np.uint64(40))) * np.float32(2.0**-24)
    return np.float32(low + (high - low) * fraction)


@device
def standard_normal(bits: np.uint64) -> np.float64:
    """One N(0, 1) number (Box & Muller 1958), within 6.67 of 0."""
    first = np.int64(bits >> np.uint64(32)) + 1
    second = np.int64(bits & np.uint64(0xFFFFFFFF))
    radius = math.sqrt(-2.0 * portable_log(np.float64(first) * 2.0**-32))
    angle = np.float64(second) * 2.0**-32
    return np.float64(radius * portable_cos_turns(angle))


@device
def normal(bits: np.uint64, mean: float, std: float) -> np.float32:
    """One N(mean, std²) number."""
    return np.float32(np.float64(mean) + np.float64(std) * standard_normal(bits))


@device
def truncated_normal(bits: np.uint64, mean: float, std: float) -> np.float32:
    """One N(mean, std²) number within 2 std of the mean, drawn again once in 22 times."""
    number = standard_normal(bits)
    while abs(number) > _BOUND:
        bits = mix64(bits + np.uint64(_GOLDEN))
        number = standard_normal(bits)
    return np.float32(np.float64(mean) + np.float64(std) * number)


@device
def initial_value(kind: int, a: float, b: float, seed: int, key: int, column: int) -> np.float32:
    """Value of one cell; `kind`, `a`, `b` come from `encode`."""
    if kind == CONSTANT:
        return np.float32(a)
    bits = random_bits(row_bits(seed, key), column)
    if kind == UNIFORM:
        return uniform(bits, a, b)
    if kind == NORMAL:
        return normal(bits, a, b)
    return truncated_normal(bits, a, b)


@device
def initial_row(kind: int, a: float, b: float, seed: int, key: int, out: F32) -> None:
    """`out[c] = initial_value(…, c)` for a whole row; the kind is chosen outside the loop, which
    therefore vectorises (3 times the speed)."""
    row = row_bits(seed, key)
    if kind == CONSTANT:
        for column in range(len(out)):
            out[column] = a
    elif kind == UNIFORM:
        for column in range(len(out)):
            out[column] = uniform(random_bits(row, column), a, b)
    elif kind == NORMAL:
        for column in range(len(out)):
            out[column] = normal(random_bits(row, column), a, b)
    else:
        for column in range(len(out)):
            out[column] = truncated_normal(random_bits(row, column), a, b)


@kernel("i8, f4, f4, i8, i8, f4[::1] -> void", group="pserver trainer")
def _fill_block(kind: int, a: float, b: float, seed: int, offset: int, out: F32) -> None:
    for i in range(len(out)):
        out[i] = initial_value(kind, a, b, seed, offset + i, 0)


@kernel("i8, f4, f4, i8, const i8[::1], f4[:, ::1] -> void", group="pserver trainer")
def _fill_rows(kind: int, a: float, b: float, seed: int, ids: I64, out: F32) -> None:
    for i in range(len(ids)):
        initial_row(kind, a, b, seed, ids[i], out[i])


def encode(initializer: Initializer) -> tuple[int, float, float]:
    """(kind, a, b) of a spec, as kernels take it."""
    match initializer:
        case Constant(value):
            return CONSTANT, value, 0.0
        case Uniform(low, high):
            return UNIFORM, low, high
        case Normal(mean, std):
            return NORMAL, mean, std
        case TruncatedNormal(mean, std):
            return TRUNCATED_NORMAL, mean, std


def fill_block(initializer: Initializer, seed: int, offset: int, out: F32) -> None:
    """Initial values of elements [offset, offset + n) of a dense parameter into `out` (n,)."""
    _fill_block(*encode(initializer), seed, offset, out)


def fill_rows(initializer: Initializer, seed: int, ids: I64, out: F32) -> None:
    """Initial values of sparse rows `ids` (n,) into `out` (n, d)."""
    _fill_rows(*encode(initializer), seed, ids, out)
