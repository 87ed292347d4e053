"""Values of examples that lie apart: gradients are often some columns of wider ones.

Kernels read them where they are; to copy them together would cost as much as what they compute
(512 × 416 numbers of 512 × 429: 0.2 ms).
"""

from __future__ import annotations

import math

import numpy as np

from psrt.core.types import Array, Shape


def lie_apart(values: Array) -> bool:
    """Whether `values` (n, …) are not in one piece, but each of the n is."""
    if values.ndim < 2 or not len(values) or values.flags.c_contiguous:
        return False
    piece_bytes = values.itemsize
    for size, stride in zip(reversed(values.shape[1:]), reversed(values.strides[1:]), strict=True):
        if size != 1 and stride != piece_bytes:
            return False
        piece_bytes *= size
    return values.strides[0] >= piece_bytes and values.strides[0] % values.itemsize == 0


def regrouped(values: Array, shape: Shape) -> Array:
    """`values` that `lie_apart`, as `shape` (n, …) where they are."""
    strides = [values.itemsize]
    for size in reversed(shape[2:]):
        strides.append(strides[-1] * size)
    places = (values.strides[0], *reversed(strides[: len(shape) - 1]))
    view: Array = np.lib.stride_tricks.as_strided(values, shape, places)
    return view


def flat_rows(values: Array) -> tuple[Array, int]:
    """The memory (m,) in which the rows of `values` (n, d) lie, and how far apart they begin."""
    rows, width = values.shape
    if not lie_apart(values):
        return np.ascontiguousarray(values).reshape(-1), width
    stride = values.strides[0] // values.itemsize
    size = (rows - 1) * stride + width
    flat: Array = np.lib.stride_tricks.as_strided(values, (size,), (values.itemsize,))
    return flat, stride


def flat_groups(values: Array, width: int) -> tuple[Array, int, int]:
    """The memory (m,) of `values` in rows of `width`: they lie in groups of so many, one behind the
    other, and these so far apart."""
    if not lie_apart(values):
        flat = np.ascontiguousarray(values).reshape(-1)
        return flat, max(1, flat.size // width), flat.size
    size = math.prod(values.shape[1:])
    flat, apart = flat_rows(regrouped(values, (len(values), size)))
    return flat, size // width, apart
