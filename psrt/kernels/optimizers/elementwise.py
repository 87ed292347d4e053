"""Element-wise loops over flat float32 blocks; one rounding per operation, the same bits however
a block is sliced."""

from __future__ import annotations

import numpy as np

from psrt.core.types import F32, F64
from psrt.kernels.jit import device, kernel

# Sums over a block are kept in this many parts: with fewer the vector units wait for each other
# (1 M squares: 460 µs with 16, 225 µs with 64).
LANES = 64


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


@device
def total_squares(x: F32, lanes: F64) -> float:
    """Σ x² over `x` (n,) in float64; `lanes` (any,) is scratch.

    Element i is added to lane i mod their number, and lanes in order: that fixed order lets the
    compiler vectorise a sum it may not reorder by itself.
    """
    lanes[:] = 0.0
    for start in range(0, len(x), len(lanes)):
        add_squares_(lanes, x[start : min(start + len(lanes), len(x))])
    return total(lanes)


@device
def add_squares_(lanes: F64, x: F32) -> None:
    """lanes[i] += x[i]²."""
    for i in range(len(x)):
        value = np.float64(x[i])
        lanes[i] += value * value


@device
def total(lanes: F64) -> float:
    """Σ lanes, in order."""
    result = 0.0
    for i in range(len(lanes)):
        result += lanes[i]
    return result


def sum_squares(x: F32) -> float:
    """Σ x² over `x` (n,) in float64, in the order of `total_squares`."""
    found: float = _sum_squares(x, np.empty(LANES))
    return found


@kernel("const f4[::1], f8[::1] -> f8", group="trainer")
def _sum_squares(x: F32, lanes: F64) -> float:
    return total_squares(x, lanes)
