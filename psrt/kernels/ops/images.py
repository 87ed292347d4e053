"""Images as matrices for BLAS, and pooling over windows of them; float32.

A convolution is one matrix product: `im2col` lays out the inputs of each weight of a filter,
`col2im_` adds their gradients back to the images (Chellapilla, Puri & Simard 2006, "High
performance convolutional neural networks for document processing"). Here images are the last
dimension, so that every loop runs over neighbours in memory whatever the filter (4 times the speed
of rows of pixels on small images); `scatter_maps` and `gather_maps` bring products into the layout
of a batch and back, with bias and relu on the way.

A large image is taken band by band: `columns` holds the output rows from `top` on. A window is
int64 (6,), pairs of (rows, columns). Outputs are overwritten unless the name ends in `_`.
"""

from __future__ import annotations

import numpy as np

from psrt.core.types import F32, I32, I64
from psrt.kernels.jit import device, kernel


@device
def first_inside(start: int, stride: int) -> int:
    """The first o ≥ 0 with start + o · stride ≥ 0."""
    return max(0, -(start // stride))


@device
def stop_inside(start: int, stride: int, size: int, count: int) -> int:
    """One more than the last o < `count` with start + o · stride < `size`, or 0."""
    return max(0, min(count, (size - 1 - start) // stride + 1))


@kernel("const f4[:, :, :, ::1], const i8[::1], i8, f4[:, :, :, :, :, ::1] -> void", "op")
def im2col(x: F32, window: I64, top: int, columns: F32) -> None:
    """`columns` (C, kh, kw, rows, ow, n) = the inputs of each weight from `x` (C, H, W, n).

    `window`: stride, padding, dilation. Padding is 0.
    """
    channels, filter_height, filter_width, rows, out_width, images = columns.shape
    height, width = x.shape[1], x.shape[2]
    stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x = window
    for channel in range(channels):
        for a in range(filter_height):
            for b in range(filter_width):
                left = b * dilation_x - padding_x
                for i in range(rows):
                    y = (top + i) * stride_y + a * dilation_y - padding_y
                    for j in range(out_width):
                        z = left + j * stride_x
                        seen = columns[channel, a, b, i, j]
                        if 0 <= y < height and 0 <= z < width:
                            source = x[channel, y, z]
                            for k in range(images):
                                seen[k] = source[k]
                        else:
                            seen[:] = 0


@kernel("const f4[:, :, :, :, :, ::1], const i8[::1], i8, f4[:, :, :, ::1] -> void", "op")
def col2im_(columns: F32, window: I64, top: int, x_grad: F32) -> None:
    """`x_grad` (C, H, W, n) += the `columns` that `im2col` made of each element."""
    channels, filter_height, filter_width, rows, out_width, images = columns.shape
    height, width = x_grad.shape[1], x_grad.shape[2]
    stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x = window
    for channel in range(channels):
        for a in range(filter_height):
            for b in range(filter_width):
                left = b * dilation_x - padding_x
                first = first_inside(left, stride_x)
                stop = stop_inside(left, stride_x, width, out_width)
                for i in range(rows):
                    y = (top + i) * stride_y + a * dilation_y - padding_y
                    if y < 0 or y >= height:
                        continue
                    for j in range(first, stop):
                        seen = columns[channel, a, b, i, j]
                        target = x_grad[channel, y, left + j * stride_x]
                        for k in range(images):
                            target[k] += seen[k]


@kernel("const f4[:, :, ::1], const f4[::1], b1, i8, f4[:, :, ::1] -> void", "op")
def scatter_maps(product: F32, bias: F32, relu: bool, start: int, maps: F32) -> None:
    """`maps` (n, filters, all pixels) from pixel `start` on = `product` (filters, pixels, n) +
    `bias` (filters,), or the relu of it."""
    zero = np.float32(0.0)
    for each in range(maps.shape[1]):
        source, added = product[each], bias[each]
        for image in range(maps.shape[0]):
            target = maps[image, each, start : start + len(source)]
            for j in range(len(target)):
                value = source[j, image] + added
                target[j] = value if value > zero or not relu else zero


@kernel("const f4[:, :, ::1], const f4[:, :, ::1], b1, i8, f4[:, :, ::1] -> void", "op")
def gather_maps(grad: F32, maps: F32, relu: bool, start: int, product: F32) -> None:
    """`product` (filters, pixels, n) = `grad` (n, filters, all pixels) from pixel `start` on, and 0
    where the `maps` of a relu are."""
    # A product with 0 or 1 vectorises, a choice does not: a tenth of the time.
    zero, one = np.float32(0.0), np.float32(1.0)
    for each in range(grad.shape[1]):
        target = product[each]
        for image in range(grad.shape[0]):
            source = grad[image, each, start : start + len(target)]
            seen = maps[image, each, start : start + len(target)]
            for j in range(len(source)):
                target[j, image] = source[j] * (one if seen[j] > zero or not relu else zero)


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
