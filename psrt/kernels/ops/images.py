"""Pooling over windows of images; float32.

A window is int64 (6,), pairs of (rows, columns). Outputs are overwritten.
"""

from __future__ import annotations

import numpy as np

from psrt.core.types import F32, I32, I64
from psrt.kernels.jit import kernel


@kernel("const f4[:, :, ::1], const i8[::1], f4[:, :, ::1], i4[:, :, ::1] -> void", "op")
def max_pool(x: F32, window: I64, out: F32, argmax: I32) -> None:
    """The maximum of each window of `x` (planes, H, W), and its place in its plane.

    `window`: size, stride, padding. The first of equal elements counts, NaN counts as the largest,
    the padding not at all.
    """
    height, width = x.shape[1], x.shape[2]
    size_y, size_x, stride_y, stride_x, padding_y, padding_x = window
    for plane in range(out.shape[0]):
        pixels = x[plane].reshape(-1)
        for i in range(out.shape[1]):
            y_first = max(i * stride_y - padding_y, 0)
            y_stop = min(i * stride_y - padding_y + size_y, height)
            for j in range(out.shape[2]):
                x_first = max(j * stride_x - padding_x, 0)
                x_stop = min(j * stride_x - padding_x + size_x, width)
                # Unsigned: asking whether an index counts from the end takes half of the time.
                where = np.uint64(y_first * width + x_first)
                best = pixels[where]
                for y in range(y_first, y_stop):
                    start, stop = np.uint64(y * width + x_first), np.uint64(y * width + x_stop)
                    for at in range(start, stop):
                        value = pixels[at]
                        better = (value > best) | (value != value)
                        where = np.uint64(at) if better else where
                        best = value if better else best
                out[plane, i, j] = best
                argmax[plane, i, j] = where


@kernel("const f4[:, ::1], const i4[:, ::1], f4[:, ::1] -> void", "op")
def max_pool_grad(grad: F32, argmax: I32, x_grad: F32) -> None:
    """`x_grad` (planes, H · W) = `grad` (planes, windows) where the maxima stood, else 0."""
    for plane in range(len(grad)):
        target = x_grad[plane]
        target[:] = 0
        for j in range(grad.shape[1]):
            target[argmax[plane, j]] += grad[plane, j]


@kernel("const f4[:, :, ::1], const i8[::1], b1, f4[:, :, ::1] -> void", "op")
def average_pool(x: F32, window: I64, exclusive: bool, out: F32) -> None:
    """The mean of each window of `x` (planes, H, W); `window` as in `max_pool`.

    `exclusive` divides by the elements inside of the image, otherwise the padding counts as zeros.
    """
    height, width = x.shape[1], x.shape[2]
    size_y, size_x, stride_y, stride_x, padding_y, padding_x = window
    for plane in range(out.shape[0]):
        for i in range(out.shape[1]):
            y_first = max(i * stride_y - padding_y, 0)
            y_stop = min(i * stride_y - padding_y + size_y, height)
            for j in range(out.shape[2]):
                x_first = max(j * stride_x - padding_x, 0)
                x_stop = min(j * stride_x - padding_x + size_x, width)
                total = x.dtype.type(0.0)
                for y in range(y_first, y_stop):
                    for z in range(x_first, x_stop):
                        total += x[plane, y, z]
                seen = (y_stop - y_first) * (x_stop - x_first)
                out[plane, i, j] = total / (seen if exclusive else size_y * size_x)


@kernel("const f4[:, :, ::1], const i8[::1], b1, f4[:, :, ::1] -> void", "op")
def average_pool_grad(grad: F32, window: I64, exclusive: bool, x_grad: F32) -> None:
    """`x_grad` (planes, H, W) = the sum of its shares in each window's `grad` (planes, oh, ow)."""
    height, width = x_grad.shape[1], x_grad.shape[2]
    size_y, size_x, stride_y, stride_x, padding_y, padding_x = window
    x_grad[:] = 0
    for plane in range(grad.shape[0]):
        for i in range(grad.shape[1]):
            y_first = max(i * stride_y - padding_y, 0)
            y_stop = min(i * stride_y - padding_y + size_y, height)
            for j in range(grad.shape[2]):
                x_first = max(j * stride_x - padding_x, 0)
                x_stop = min(j * stride_x - padding_x + size_x, width)
                seen = (y_stop - y_first) * (x_stop - x_first)
                share = grad[plane, i, j] / (seen if exclusive else size_y * size_x)
                for y in range(y_first, y_stop):
                    for z in range(x_first, x_stop):
                        x_grad[plane, y, z] += share
