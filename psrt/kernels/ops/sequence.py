"""Target places of the elements of ragged vars, and softmax over the elements of each example.

Example i of a ragged var owns elements `offsets[i]:offsets[i + 1]`. Ops that move elements compute
places here and move them by numpy's `take`, which takes every dtype and wants int64 places.
"""

from __future__ import annotations

import numpy as np

from psrt.core.types import F32, I64, Array
from psrt.kernels.jit import kernel


@kernel("const i8[::1], i8[::1] -> void", group="op")
def owners(offsets: I64, owner: I64) -> None:
    """`owner` (n,) = the example of each element."""
    for i in range(len(offsets) - 1):
        for position in range(offsets[i], offsets[i + 1]):
            owner[position] = i


@kernel("const i8[::1], i8[::1] -> void", group="op")
def reversed_places(offsets: I64, places: I64) -> None:
    """`places` (n,) = the place of each element after each example is reversed."""
    for i in range(len(offsets) - 1):
        for position in range(offsets[i], offsets[i + 1]):
            places[position] = offsets[i] + offsets[i + 1] - 1 - position


@kernel("const i8[::1], const i8[::1], i8[::1] -> void", group="op")
def run_places(offsets: I64, starts: I64, places: I64) -> None:
    """`places` (n,) = contiguous places for the elements of example i from `starts[i]` (b,) on."""
    for i in range(len(offsets) - 1):
        for position in range(offsets[i], offsets[i + 1]):
            places[position] = starts[i] + position - offsets[i]


@kernel("const i8[::1], i8, i8[::1], b1[::1] -> void", group="op")
def padded_places(offsets: I64, width: int, places: I64, is_cut: Array) -> None:
    """`places` (n,) of each element among examples of `width`; `is_cut` marks elements without
    one."""
    for i in range(len(offsets) - 1):
        for position in range(offsets[i], offsets[i + 1]):
            at = position - offsets[i]
            is_cut[position] = at >= width
            places[position] = i * width + min(at, width - 1)


@kernel("const i8[::1], i8, i8[::1], b1[::1] -> void", group="op")
def padded_sources(offsets: I64, width: int, sources: I64, is_hole: Array) -> None:
    """`sources` (b · width,) = the element at each place of examples of `width`; `is_hole` marks
    places without one."""
    for i in range(len(offsets) - 1):
        count = offsets[i + 1] - offsets[i]
        for at in range(width):
            is_hole[i * width + at] = at >= count
            sources[i * width + at] = offsets[i] + at if at < count else 0


@kernel("const i8[::1], i8, i8[:, ::1], b1[:, ::1] -> void", group="op")
def context_sources(offsets: I64, start: int, sources: I64, is_hole: Array) -> None:
    """`sources` (n, length) = the elements from `start` places behind each one on; `is_hole` marks
    those outside its example."""
    for i in range(len(offsets) - 1):
        for position in range(offsets[i], offsets[i + 1]):
            for k in range(sources.shape[1]):
                at = position + start + k
                outside = at < offsets[i] or at >= offsets[i + 1]
                is_hole[position, k] = outside
                sources[position, k] = position if outside else at


# --- softmax --------------------------------------------------------------------------------------


@kernel("const f4[::1], const i8[::1], f4[::1] -> void", group="op")
def below_maximum(x: F32, offsets: I64, out: F32) -> None:
    """`out` (n,) = x − the maximum of its example: safe to raise e to."""
    for i in range(len(offsets) - 1):
        top = np.float32(-np.inf)
        for position in range(offsets[i], offsets[i + 1]):
            top = max(top, x[position])
        for position in range(offsets[i], offsets[i + 1]):
            out[position] = x[position] - top


@kernel("f4[::1], const i8[::1] -> void", group="op")
def share_of_sum_(x: F32, offsets: I64) -> None:
    """`x` (n,) /= the sum of its example."""
    for i in range(len(offsets) - 1):
        total = np.float32(0.0)
        for position in range(offsets[i], offsets[i + 1]):
            total += x[position]
        for position in range(offsets[i], offsets[i + 1]):
            x[position] /= total


@kernel("const f4[::1], const f4[::1], const i8[::1], f4[::1] -> void", group="op")
def softmax_grad(out: F32, grad_out: F32, offsets: I64, grad_x: F32) -> None:
    """`grad_x` (n,) = out (d − Σ d · out), the sum over the example."""
    for i in range(len(offsets) - 1):
        total = np.float32(0.0)
        for position in range(offsets[i], offsets[i + 1]):
            total += grad_out[position] * out[position]
        for position in range(offsets[i], offsets[i + 1]):
            grad_x[position] = out[position] * (grad_out[position] - total)
