"""float32 arrays as the tensors that travel in their place, and back.

    float32    the array itself
    float16    numpy's float16; values may be multiplied by a power of two first, see `narrow`
    bfloat16   uint16, since numpy has no bfloat16
    int8       int8, and behind it a float32 scale for each row; a block without rows is taken as
               rows of `BLOCK_ROW` elements, the last of which may be shorter

Rounding and what happens to numbers that do not fit: `psrt.kernels.precision.halves`. The dtype of
a tensor identifies its precision, so a receiver needs nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from psrt.core.types import F32, Array, Shape
from psrt.kernels.precision import halves

BLOCK_ROW = 256
"""Elements of a block that share a scale: 1.6 % more bytes than none would take."""

_DTYPE = {"float32": np.float32, "float16": np.float16, "bfloat16": np.uint16, "int8": np.int8}
_PRECISION = {np.dtype(dtype): precision for precision, dtype in _DTYPE.items()}
_TARGET_EXPONENT = 15  # the largest float16 has 16
_MOST_EXPONENT = 126  # 2 ** ± this are normal float32
_FAR_ABOVE = 28  # from the smallest normal float16, 2 ** -14, to 2 ** 14, where the largest is put
_LEAST_CLIPPED = 0  # however small the others are, what is below 2 ** this travels as it is


@dataclass(frozen=True)
class Narrow:
    """`tensors`, one or two, are the values divided by `factor`, a power of two."""

    tensors: tuple[Array, ...]
    factor: float = 1.0


def narrow(values: F32, precision: str, *, small: bool = False) -> Narrow:
    """`values` (n,) or (n, width), contiguous, in `precision`; float32 is not copied.

    `small` numbers, as gradients are, would be lost in float16, whose smallest normal number is
    6.1e-5: they are multiplied so that the largest finite one comes near the end of its range. Rows
    have one factor together, and nobody keeps what they lose: where a number of 32,768 or more
    would leave half of them subnormal it is clipped instead, the lesser harm by far.
    """
    if precision == "float32":
        return Narrow((values,))
    flat, out = values.reshape(-1), np.empty(values.shape, _DTYPE[precision])
    if precision == "int8":
        scales = np.empty(scales_of(values.shape), np.float32)
        halves.to_int8(flat, _row(values.shape), out.reshape(-1), scales)
        return Narrow((out, scales))
    bits, factor = out.view(np.uint16).reshape(-1), 1.0
    if precision == "bfloat16":
        halves.to_bf16(flat, bits)
    else:
        factor = _factor(flat, clips=values.ndim == 2) if small else 1.0
        halves.to_f16(flat, 1 / factor, bits)
    return Narrow((out,), factor)


def widen(tensors: Sequence[Array], out: F32, factor: float = 1.0) -> None:
    """`out` (n,) or (n, width), contiguous, = the values of `tensors` times `factor`.

    Tensors are those `narrow` makes, of the shape of `out`, of any precision; `factor` counts for
    float16 alone.
    """
    values = tensors[0]
    if values.dtype == np.float32:
        out[...] = values
        return
    flat = out.reshape(-1)
    if values.dtype == np.int8:
        halves.from_int8(values.reshape(-1), tensors[1], _row(out.shape), flat)
    elif values.dtype == np.uint16:
        halves.from_bf16(values.reshape(-1), flat)
    else:
        halves.from_f16(values.view(np.uint16).reshape(-1), factor, flat)


def widened(tensors: Sequence[Array], factor: float = 1.0) -> F32:
    """`widen` into an array of its own; float32 is not copied."""
    if tensors[0].dtype == np.float32:
        values: F32 = tensors[0]
        return values
    out = np.empty(tensors[0].shape, np.float32)
    widen(tensors, out, factor)
    return out


def precision_of(dtype: np.dtype[np.generic]) -> str | None:
    """The precision of numbers of this dtype; None for other dtypes."""
    return _PRECISION.get(dtype)


def scales_of(shape: Shape) -> int:
    """The number of scales of an int8 tensor of this shape."""
    return -(-math.prod(shape) // _row(shape))


def _row(shape: Shape) -> int:
    """Elements that share a scale."""
    return shape[1] if len(shape) == 2 else BLOCK_ROW


def _factor(flat: F32, clips: bool) -> float:
    """A power of two by which `flat` is to be divided to use the range of float16."""
    largest = float(halves.largest_magnitude(flat))
    if largest == 0.0:
        return 1.0
    exponent = math.frexp(largest)[1]
    if not math.isfinite(largest) or (clips and exponent > _TARGET_EXPONENT):
        exponent = _exponent_to_reach(flat, clips)
    exponent -= _TARGET_EXPONENT
    return math.ldexp(1.0, max(-_MOST_EXPONENT, min(exponent, _MOST_EXPONENT)))


def _exponent_to_reach(flat: F32, clips: bool) -> int:
    """That of the largest finite number of `flat`, or one that keeps their median normal.

    Counted like `math.frexp`: one more than the exponent in the number's bits.
    """
    counts = np.zeros(256, np.int64)
    halves.count_exponents(flat, counts)
    counts[0] = counts[255] = 0  # zeros, and what is not finite
    if not counts.any():
        return _TARGET_EXPONENT
    largest = int(np.flatnonzero(counts)[-1]) - 126
    if not clips or largest <= _TARGET_EXPONENT:
        return largest
    below = np.cumsum(counts)
    median = int(np.searchsorted(below, (below[-1] + 1) // 2)) - 126
    return min(largest, max(_LEAST_CLIPPED, median + _FAR_ABOVE))
