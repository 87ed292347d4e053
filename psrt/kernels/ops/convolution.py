"""Images as matrices for BLAS; float32.

A convolution is one matrix product for each group: `im2col` lays out the inputs of each weight of a
filter, `col2im_` adds their gradients back to the images (Chellapilla, Puri & Simard 2006, "High
performance convolutional neural networks for document processing").

Loops run along rows of pixels, so they are slow where rows are short. There images may be
interleaved: `lanes` images whose pixels alternate are one image with rows `lanes` times as long
(4 × 4 pixels: a fifth of the time). `scatter_maps` and `gather_maps` bring products into the layout
of a batch and back, with bias and relu on the way.

A large image is taken band by band: `columns` holds the output rows from `top` on. A window is
int64 (6,), pairs of (rows, columns): stride, padding, dilation. Outputs are overwritten unless the
name ends in `_`.
"""

from __future__ import annotations

import numpy as np

from psrt.core.types import F32, I64
from psrt.kernels.jit import device, kernel

# Positions are unsigned: asking whether an index counts from the end takes half of the time.


@device
def _first_inside(start: int, stride: int, count: int) -> int:
    """The first o with start + o · stride ≥ 0, `count` at most."""
    return min(max(0, -(start // stride)), count)


@device
def _stop_inside(start: int, stride: int, size: int, count: int) -> int:
    """One more than the last o < `count` with start + o · stride < `size`, or 0."""
    return max(0, min(count, (size - 1 - start) // stride + 1))


@device
def _clear(flat: F32, start: int, stop: int) -> None:
    for at in range(np.uint64(start), np.uint64(stop)):
        flat[at] = 0


@kernel("const f4[:, :, :, ::1], const i8[::1], i8, i8, i8, f4[:, :, :, :, :, ::1] -> void", "op")
def im2col(x: F32, window: I64, lanes: int, channel: int, top: int, columns: F32) -> None:
    """`columns` (c, kh, kw, n, rows, ow · lanes) = the inputs of each weight in the channels of
    `x` (n, C, H, W · lanes) from `channel` on; padding is 0."""
    channels, filter_height, filter_width, images, rows, out_width = columns.shape
    height, width = x.shape[2], x.shape[3] // lanes
    stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x = window
    source, target, begin = x.reshape(-1), columns.reshape(-1), 0
    for c in range(channel, channel + channels):
        for a in range(filter_height):
            for b in range(filter_width):
                left = b * dilation_x - padding_x
                first = _first_inside(left, stride_x, out_width // lanes)
                stop = max(first, _stop_inside(left, stride_x, width, out_width // lanes))
                for image in range(images):
                    for i in range(rows):
                        y = (top + i) * stride_y + a * dilation_y - padding_y
                        end = begin + out_width
                        count = stop - first if 0 <= y < height else 0
                        inner = begin + first * lanes if count else end
                        _clear(target, begin, inner)
                        if count:
                            row = (image * x.shape[1] + c) * height + y
                            seen = (row * width + left + first * stride_x) * lanes
                            _take(source, seen, stride_x, target, inner, count, lanes)
                        _clear(target, inner + count * lanes, end)
                        begin = end


@device
def _take(
    source: F32, seen: int, stride: int, target: F32, begin: int, count: int, lanes: int
) -> None:
    """Copy `count` pixels."""
    if stride == 1:
        count, lanes = 1, count * lanes
    start, to, step = np.uint64(seen), np.uint64(begin), np.uint64(stride)
    if lanes == 1:
        for j in range(np.uint64(count)):
            target[to + j] = source[start + j * step]
    else:
        for j in range(np.uint64(count)):
            for k in range(np.uint64(lanes)):
                pixel = j * np.uint64(lanes)
                target[to + pixel + k] = source[start + pixel * step + k]


@kernel("const f4[:, :, :, :, :, ::1], const i8[::1], i8, i8, i8, f4[:, :, :, ::1] -> void", "op")
def col2im_(columns: F32, window: I64, lanes: int, channel: int, top: int, x_grad: F32) -> None:
    """`x_grad` (n, C, H, W · lanes) += the `columns` that `im2col` made of each element."""
    channels, filter_height, filter_width, images, rows, out_width = columns.shape
    height, width = x_grad.shape[2], x_grad.shape[3] // lanes
    stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x = window
    source, target, begin = columns.reshape(-1), x_grad.reshape(-1), 0
    for c in range(channel, channel + channels):
        for a in range(filter_height):
            for b in range(filter_width):
                left = b * dilation_x - padding_x
                first = _first_inside(left, stride_x, out_width // lanes)
                stop = max(first, _stop_inside(left, stride_x, width, out_width // lanes))
                for image in range(images):
                    for i in range(rows):
                        y = (top + i) * stride_y + a * dilation_y - padding_y
                        if 0 <= y < height and first < stop:
                            row = (image * x_grad.shape[1] + c) * height + y
                            seen = (row * width + left + first * stride_x) * lanes
                            inner = begin + first * lanes
                            _give_(source, inner, stride_x, target, seen, stop - first, lanes)
                        begin += out_width


@device
def _give_(
    source: F32, begin: int, stride: int, target: F32, seen: int, count: int, lanes: int
) -> None:
    """Add `count` pixels."""
    if stride == 1:
        count, lanes = 1, count * lanes
    start, to, step = np.uint64(begin), np.uint64(seen), np.uint64(stride)
    if lanes == 1:
        for j in range(np.uint64(count)):
            target[to + j * step] += source[start + j]
    else:
        for j in range(np.uint64(count)):
            for k in range(np.uint64(lanes)):
                pixel = j * np.uint64(lanes)
                target[to + pixel * step + k] += source[start + pixel + k]


@kernel("const f4[:, :, :, ::1], const f4[::1], b1, i8, i8, f4[:, :, ::1] -> void", "op")
def scatter_maps(product: F32, bias: F32, relu: bool, first: int, start: int, maps: F32) -> None:
    """`maps` (n, filters, all pixels) from filter `first` and pixel `start` on = `product`
    (some filters, n / lanes, pixels, lanes) + `bias` (filters,), or the relu of it."""
    zero, lanes = np.float32(0.0), product.shape[3]
    for each in range(product.shape[0]):
        added = bias[first + each]
        for image in range(maps.shape[0]):
            target = maps[image, first + each, start : start + product.shape[2]]
            if lanes == 1:
                row = product[each, image].reshape(-1)
                for j in range(len(target)):
                    value = row[j] + added
                    target[j] = value if value > zero or not relu else zero
            else:
                source = product[each, image // lanes]
                for j in range(len(target)):
                    value = source[j, image % lanes] + added
                    target[j] = value if value > zero or not relu else zero


@kernel("f4[:, :, ::1], const f4[::1], b1 -> void", "op")
def bias_maps_(maps: F32, bias: F32, relu: bool) -> None:
    """`maps` (n, filters, pixels) += `bias` (filters,), or the relu of it."""
    zero = np.float32(0.0)
    for image in range(maps.shape[0]):
        for each in range(maps.shape[1]):
            target, added = maps[image, each], bias[each]
            for j in range(len(target)):
                value = target[j] + added
                target[j] = value if value > zero or not relu else zero


@kernel("const f4[:, :, ::1], const f4[:, :, ::1], b1, i8, i8, f4[:, :, :, ::1] -> void", "op")
def gather_maps(grad: F32, maps: F32, relu: bool, first: int, start: int, product: F32) -> None:
    """`product` (some filters, n / lanes, pixels, lanes) = `grad` (n, filters, all pixels) from
    filter `first` and pixel `start` on, and 0 where the `maps` of a relu are."""
    # A product with 0 or 1 vectorises, a choice does not: a tenth of the time.
    zero, one, lanes = np.float32(0.0), np.float32(1.0), product.shape[3]
    for each in range(product.shape[0]):
        for image in range(grad.shape[0]):
            source = grad[image, first + each, start : start + product.shape[2]]
            seen = maps[image, first + each, start : start + product.shape[2]]
            if lanes == 1:
                row = product[each, image].reshape(-1)
                for j in range(len(source)):
                    row[j] = source[j] * (one if seen[j] > zero or not relu else zero)
            else:
                target = product[each, image // lanes]
                for j in range(len(source)):
                    passed = one if seen[j] > zero or not relu else zero
                    target[j, image % lanes] = source[j] * passed
