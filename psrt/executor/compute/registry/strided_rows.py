"""Rows with a stride: gradients are often some columns of wider ones.

Kernels read them without a copy, which would cost as much as the kernel (512 × 416 elements of
512 × 429: 0.2 ms).
"""

from __future__ import annotations

import math

import numpy as np

from psrt.core.types import Array, Shape


def are_strided(values: Array) -> bool:
    """True if each of the n `values` (n, …) is contiguous, but the array is not."""
    if values.ndim < 2 or not len(values) or values.flags.c_contiguous:
        return False
    piece_bytes = values.itemsize
    for size, stride in zip(reversed(values.shape[1:]), reversed(values.strides[1:]), strict=True):
        if size != 1 and stride != piece_bytes:
            return False
        piece_bytes *= size
    return values.strides[0] >= piece_bytes and values.strides[0] % values.itemsize == 0


def reshape_strided(values: Array, shape: Shape) -> Array:
    """A view of `values` that `are_strided`, with `shape` (n, …)."""
    strides = [values.itemsize]
    for size in reversed(shape[2:]):
        strides.append(strides[-1] * size)
    strides_by_axis = (values.strides[0], *reversed(strides[: len(shape) - 1]))
    view: Array = np.lib.stride_tricks.as_strided(values, shape, strides_by_axis)
    return view


def flat_rows(values: Array) -> tuple[Array, int]:
    """The memory (m,) of the rows of `values` (n, d), and their stride in elements."""
    if not are_strided(values):
        return np.ascontiguousarray(values).reshape(-1), values.shape[1]
    return _memory(values, values.shape[1])


def flat_groups(values: Array, width: int) -> tuple[Array, int, int]:
    """The memory (m,) of `values`, rows of `width` per contiguous group, stride of groups."""
    if not are_strided(values):
        flat = np.ascontiguousarray(values).reshape(-1)
        return flat, max(1, flat.size // width), flat.size
    size = math.prod(values.shape[1:])
    flat, apart = _memory(values, size)
    return flat, size // width, apart


def _memory(values: Array, size: int) -> tuple[Array, int]:
    """The memory (m,) of `values` that `are_strided`, `size` elements each, and their stride."""
    stride = values.strides[0] // values.itemsize
    length = (len(values) - 1) * stride + size
    # as_strided takes as long as the kernel of a small lookup: one call, not two
    flat: Array = np.lib.stride_tricks.as_strided(values, (length,), (values.itemsize,))
    return flat, stride
