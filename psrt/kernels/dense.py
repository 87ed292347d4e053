"""Element-wise loops over flat float32 blocks; one rounding per operation, the same bits however
a block is sliced."""

from __future__ import annotations

import numpy as np

from psrt.core.types import F32, F64
from psrt.kernels.jit import kernel

_LANES = 16


@kernel("f4[::1], const f4[::1] -> void", group="pserver trainer")
def add_(out: F32, x: F32) -> None:
    """`out` (n,) += `x` (n,)."""
    for i in range(len(out)):
        out[i] += x[i]


@kernel("f4[::1], f4 -> void", group="pserver trainer")
def scale_(out: F32, factor: float) -> None:
    """`out` (n,) *= factor."""
    for i in range(len(out)):
        out[i] *= factor


@kernel("f4[::1], f4, const f4[::1] -> void", group="pserver trainer")
def axpy_(out: F32, factor: float, x: F32) -> None:
    """`out` (n,) += factor · `x` (n,) (BLAS level 1 axpy, unfused)."""
    for i in range(len(out)):
        out[i] += factor * x[i]


@kernel("const f4[::1], f4[::1] -> void", group="pserver trainer")
def copy(src: F32, dst: F32) -> None:
    """`dst` (n,) = `src` (n,), without the interpreter lock."""
    for i in range(len(src)):
        dst[i] = src[i]


def sum_squares(x: F32) -> float:
    """Σ x² over `x` (n,) in float64.

    Element i belongs to lane i mod 16 and lanes are added in order: that fixed order lets the
    compiler vectorise a sum it may not reorder by itself.
    """
    total: float = _sum_squares(x, np.zeros(_LANES))
    return total


@kernel("const f4[::1], f8[::1] -> f8", group="trainer")
def _sum_squares(x: F32, lanes: F64) -> float:
    """`lanes` (16,) float64 zeros."""
    whole = len(x) - len(x) % _LANES
    for start in range(0, whole, _LANES):
        for lane in range(_LANES):
            value = np.float64(x[start + lane])
            lanes[lane] += value * value
    for i in range(whole, len(x)):
        value = np.float64(x[i])
        lanes[i - whole] += value * value
    total = 0.0
    for lane in range(_LANES):
        total += lanes[lane]
    return total
