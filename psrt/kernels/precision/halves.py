"""Numbers of 16 and 8 bits, as rows are stored and tensors travel; psrt computes in float32.

    float16   5 bits of exponent, 10 of mantissa (IEEE 754 binary16); the processor converts
    bfloat16  the upper half of a float32: its range with 7 bits of mantissa
    int8      per row of numbers: x ≈ q · scale with scale = max |x| / 127 and whole q in ±127

All round to nearest, ties to even. ±inf and NaN stay, but a finite number never becomes infinite:
one that is too large becomes the largest finite number (65,504 in float16), so that a single large
gradient does not destroy a row. An int8 row with an inf or a NaN becomes NaN as a
whole, so that divergence stays visible.

numba has neither type on CPUs: both are arrays of uint16 here (`values.view(np.uint16)` of a
numpy float16 array). x86 processors without F16C, which are older than 2013, convert
by `half_bits`.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any

import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from psrt.core.types import F32, I8, I64, U16
from psrt.kernels.jit import device, kernel
from psrt.kernels.precision import half_bits

F16_MAX = np.float32(65504.0)
INT8_MAX = np.float32(127.0)
_INF = np.float32(np.inf)
_LEAST = INT8_MAX * np.finfo(np.float32).tiny
_MOST = np.float32(3.4e38)  # above, 127 · (x / 127) may be infinite
_HALF, _FLOAT, _WORD = ir.HalfType(), ir.FloatType(), ir.IntType(16)


def converts_float16(machine: str, features: Mapping[str, bool]) -> bool:
    """True if a processor has the instruction; if not, LLVM's conversion ends the process."""
    return machine not in ("x86_64", "AMD64") or features.get("f16c", False)


def _truncated(typing_context: Any, x: Any) -> Any:
    """`truncated(x)`: the bits of the float16 nearest to a float32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(builder.fptrunc(args[0], _HALF), _WORD)

    return types.uint16(types.float32), generate


def _extended(typing_context: Any, bits: Any) -> Any:
    """`extended(bits)`: the float32 of these bits of a float16."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fpext(builder.bitcast(args[0], _HALF), _FLOAT)

    return types.float32(types.uint16), generate


truncated: Any = half_bits.truncated
extended: Any = half_bits.extended
if converts_float16(platform.machine(), llvm.get_host_cpu_features()):
    truncated, extended = intrinsic(_truncated), intrinsic(_extended)


@device
def f16_of(x: Any) -> Any:
    """The bits (uint16) of the float16 nearest to float32 `x`."""
    return f16_of_product(x, np.float32(1.0))


@device
def f16_of_product(x: Any, factor: Any) -> Any:
    """Of `x` · factor, which may be infinite in float32 where `x` is not."""
    within = min(max(x * factor, -F16_MAX), F16_MAX)
    return truncated(within if abs(x) < _INF else x)


@device
def f32_of_f16(bits: Any) -> Any:
    return extended(bits)


@device
def bf16_of(x: Any) -> Any:
    """The bits (uint16) of the bfloat16 nearest to float32 `x`.

    Adding half of the last place kept, and one more if that is odd, carries exactly when rounding
    to the even neighbour does.
    """
    bits = np.float32(x).view(np.uint32)
    upper = np.uint32(bits >> np.uint32(16))
    magnitude = np.uint32(bits & np.uint32(0x7FFFFFFF))
    if magnitude > np.uint32(0x7F800000):
        return np.uint16(upper | np.uint32(0x40))  # a NaN whose mark is in the lower half
    if magnitude >= np.uint32(0x7F7F0000):
        return np.uint16(upper)  # infinite, or would be
    return np.uint16((bits + np.uint32(0x7FFF) + (upper & np.uint32(1))) >> np.uint32(16))


@device
def f32_of_bf16(bits: Any) -> Any:
    return np.uint32(np.uint32(bits) << np.uint32(16)).view(np.float32)


@kernel("const f4[::1], f4, u2[::1] -> void", group="half")
def to_f16(x: F32, factor: float, out: U16) -> None:
    """`out` (n,) = `x` (n,) · factor as float16."""
    for i in range(len(x)):
        out[i] = f16_of_product(x[i], factor)


@kernel("const u2[::1], f4, f4[::1] -> void", group="half")
def from_f16(x: U16, factor: float, out: F32) -> None:
    """`out` (n,) = `x` (n,), which is float16, · factor."""
    for i in range(len(x)):
        out[i] = f32_of_f16(x[i]) * factor


@kernel("const f4[::1], u2[::1] -> void", group="half")
def to_bf16(x: F32, out: U16) -> None:
    """`out` (n,) = `x` (n,) as bfloat16."""
    for i in range(len(x)):
        out[i] = bf16_of(x[i])


@kernel("const u2[::1], f4[::1] -> void", group="half")
def from_bf16(x: U16, out: F32) -> None:
    """`out` (n,) = `x` (n,), which is bfloat16."""
    for i in range(len(x)):
        out[i] = f32_of_bf16(x[i])


@kernel("const f4[::1], i8, i1[::1], f4[::1] -> void", group="half")
def to_int8(x: F32, width: int, out: I8, scales: F32) -> None:
    """`x` (n,) in rows of `width`, the last of which may be shorter: an element of row i is about
    `out` (n,) · scales[i], with `scales` (rows,).

    A row whose scale would be less than the smallest normal number becomes zeros.
    """
    for i in range(len(scales)):
        row, target = x[i * width : (i + 1) * width], out[i * width : (i + 1) * width]
        largest = _largest(row)
        scales[i] = min(largest, _MOST) / INT8_MAX if largest < _INF else np.float32(np.nan)
        factor = INT8_MAX / largest if _LEAST <= largest < _INF else np.float32(0.0)
        for j in range(len(row)):
            target[j] = np.int8(np.rint(row[j] * factor))


@kernel("const i1[::1], const f4[::1], i8, f4[::1] -> void", group="half")
def from_int8(x: I8, scales: F32, width: int, out: F32) -> None:
    """`out` (n,) = `x` (n,) in rows of `width`, each times its one of `scales` (rows,)."""
    for i in range(len(scales)):
        row, target = x[i * width : (i + 1) * width], out[i * width : (i + 1) * width]
        scale = scales[i]
        for j in range(len(row)):
            target[j] = np.float32(row[j]) * scale


@kernel("f4[::1], const f4[::1] -> void", group="half")
def keep_lost_(x: F32, sent: F32) -> None:
    """`x` (n,) -= `sent` (n,), and 0 where that is not finite."""
    for i in range(len(x)):
        lost = x[i] - sent[i]
        x[i] = lost if abs(lost) < _INF else np.float32(0.0)


@kernel("const f4[::1], i8[::1] -> void", group="half")
def count_exponents(x: F32, counts: I64) -> None:
    """`counts` (256,) += how many of `x` (n,) have each exponent, as in their bits: 0 of zeros
    and subnormal numbers, 127 of 1.0, 255 of inf and NaN."""
    bits = x.view(np.uint32)
    for i in range(len(bits)):
        counts[(bits[i] >> np.uint32(23)) & np.uint32(0xFF)] += 1


@kernel("const f4[::1] -> f4", group="half")
def largest_magnitude(x: F32) -> float:
    """max |x| over `x` (n,), 0 of nothing, NaN if there is one."""
    largest: float = _largest(x)
    return largest


@device
def _largest(x: F32) -> Any:
    """Bits of magnitudes rise as their numbers do, and NaN is above all."""
    bits, largest = x.view(np.uint32), np.uint32(0)
    for i in range(len(bits)):
        largest = max(largest, np.uint32(bits[i] & np.uint32(0x7FFFFFFF)))
    return np.uint32(largest).view(np.float32)
