"""Convolution by BLAS, a tile at a time, and pooling.

A tile is a few images, or a band of rows of their output, whose columns fit into the cache. The
columns of a whole batch would go through memory (MNIST, batch 64: 12 MB); to compute them again for
the gradient is cheaper than to keep them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from psrt.core.types import Array, Shape
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.kernels.ops import images as kernels

TILE_IMAGES = 16  # a cache line of float32
TILE_ELEMENTS = 1 << 18  # 1 MB of columns: what a level 2 cache holds

# --- tiles ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tile:
    """Images `batch` of the batch, a band of `rows` of their output.

    Images are the last dimension of all arrays but `sums`: `images` and `images_grad` (C, H, W, n),
    `columns` (C, kh, kw, rows, ow, n), `product` (filters, pixels, n); `sums` is like the filter.
    """

    batch: slice
    rows: range
    images: Array
    images_grad: Array
    sums: Array
    columns: Array
    product: Array


class Tiling:
    """The tiles of one convolution; everything except the batch size is known in advance.

    `image` is (C, H, W), `out` (filters, height, width).
    """

    def __init__(self, op: Bound) -> None:
        self.image = op.shapes("input")[0][1:]
        self.filter = op.shapes("filter")[0]
        self.groups = op.attrs["groups"]
        self.window = _window(op, "stride", "padding", "dilation")
        self.out = op.vars[op.one("out").name].shape[1:]
        self._memory = op.scratch()

    def tiles(self, x: Array) -> Iterator[Tile]:
        """The tiles of the batch `x`, band by band for each group of images; `images` is filled."""
        height = self.out[1]
        count = min(TILE_IMAGES, max(len(x), 1))
        band = min(max(TILE_ELEMENTS // self._columns(1, count), 1), height)
        flat = self._memory.reserve((sum(map(math.prod, self._shapes(band, count))),))
        for start in range(0, len(x), count):
            batch = slice(start, min(start + count, len(x)))
            for top in range(0, height, band):
                rows = range(top, min(top + band, height))
                shapes = self._shapes(len(rows), batch.stop - start)
                tile = Tile(batch, rows, *_cut(flat, shapes))
                if top == 0:
                    np.copyto(tile.images, x[batch].transpose(1, 2, 3, 0))
                yield tile

    def is_last(self, tile: Tile) -> bool:
        """True if the tile holds the last rows of its images."""
        return tile.rows.stop == self.out[1]

    def first_pixel(self, tile: Tile) -> int:
        return tile.rows.start * self.out[2]

    def maps(self, images: Array) -> Array:
        """(rows, filters, height, width) → (rows, filters, pixels)."""
        return images.reshape(len(images), self.out[0], self.out[1] * self.out[2])

    def by_group(self, tile: Tile, weights: Array) -> tuple[Array, Array, Array]:
        """The operands of filter · columns = product by group, in the layout of BLAS:

        (groups, filters, weights), (groups, weights, pixels · n) and (groups, filters, pixels · n).
        """
        pixels = math.prod(tile.product.shape[1:])
        return (
            weights.reshape(self.groups, self.out[0] // self.groups, -1),
            tile.columns.reshape(self.groups, -1, pixels),
            tile.product.reshape(self.groups, -1, pixels),
        )

    def _columns(self, rows: int, images: int) -> int:
        return math.prod((self.image[0], *self.filter[2:], rows, self.out[2], images))

    def _shapes(self, rows: int, images: int) -> list[Shape]:
        """Shapes of the arrays of a tile; those kept for the next band come first."""
        inner = (*self.image, images)
        columns = (self.image[0], *self.filter[2:], rows, self.out[2], images)
        product = (self.out[0], rows * self.out[2], images)
        return [inner, inner, self.filter, columns, product]


def _cut(flat: Array, shapes: list[Shape]) -> Iterator[Array]:
    start = 0
    for shape in shapes:
        stop = start + math.prod(shape)
        yield flat[start:stop].reshape(shape)
        start = stop


def _window(op: Bound, *names: str) -> Array:
    """Pairs as kernels read them: of a padding, that before the image."""
    return np.array([op.attrs[name][:2] for name in names], np.int64).reshape(-1)


# --- convolution ----------------------------------------------------------------------------------


@computes("conv2d")
def conv2d(op: Bound) -> Step:
    x, weights, out = op.one("input"), op.one("filter"), op.one("out")
    bias, is_relu, tiling = op.maybe("bias"), op.attrs["activation"] == "relu", Tiling(op)
    im2col, scatter_maps = op.kernel(kernels.im2col), op.kernel(kernels.scatter_maps)
    no_bias = np.zeros(tiling.out[0], op.dtype)

    def run() -> None:
        maps = tiling.maps(out.reserve((len(x.value), *tiling.out)))
        added = no_bias if bias is None else bias.value
        for tile in tiling.tiles(x.value):
            im2col(tile.images, tiling.window, tile.rows.start, tile.columns)
            matrix, columns, product = tiling.by_group(tile, weights.value)
            np.matmul(matrix, columns, out=product)
            first = tiling.first_pixel(tile)
            scatter_maps(tile.product, added, is_relu, first, maps[tile.batch])

    return run


@computes("conv2d_grad")
def conv2d_grad(op: Bound) -> Step:
    x, maps, grad = op.one("input"), op.one("out"), op.one("out@GRAD")
    tiling, is_relu = Tiling(op), op.attrs["activation"] == "relu"
    gather_maps = op.kernel(kernels.gather_maps)
    x_part = _input_part(op, tiling)
    parts = [part for part in (_bias_part(op), _filter_part(op, tiling), x_part) if part]

    def run() -> None:
        for begin, _ in parts:
            begin()
        # A gradient may be some columns of a wider one, whose rows are apart.
        given = tiling.maps(np.ascontiguousarray(grad.value))
        seen = tiling.maps(maps.value)
        for tile in tiling.tiles(x.value):
            first, batch = tiling.first_pixel(tile), tile.batch
            gather_maps(given[batch], seen[batch], is_relu, first, tile.product)
            for _, add in parts:
                add(tile)

    return run


Part: TypeAlias = tuple[Callable[[], object], Callable[[Tile], None]]
"""The gradient of one input: a function that begins a step, and one that adds a tile. The tile's
`product` holds the gradient of the convolution before the activation."""


def _bias_part(op: Bound) -> Part | None:
    grad, shape = op.maybe("bias@GRAD"), op.shapes("filter")[0][:1]
    if grad is None:
        return None

    def add(tile: Tile) -> None:
        sums = grad.value
        sums += tile.product.reshape(len(sums), -1).sum(axis=1)

    return lambda: grad.reserve(shape).fill(0), add


def _filter_part(op: Bound, tiling: Tiling) -> Part | None:
    grad, im2col = op.maybe("filter@GRAD"), op.kernel(kernels.im2col)
    if grad is None:
        return None

    def add(tile: Tile) -> None:
        im2col(tile.images, tiling.window, tile.rows.start, tile.columns)
        sums, columns, product = tiling.by_group(tile, tile.sums)
        np.matmul(product, columns.transpose(0, 2, 1), out=sums)
        total = grad.value
        total += tile.sums

    return lambda: grad.reserve(tiling.filter).fill(0), add


def _input_part(op: Bound, tiling: Tiling) -> Part | None:
    grad, col2im_ = op.maybe("input@GRAD"), op.kernel(kernels.col2im_)
    x, weights = op.one("input"), op.one("filter")
    if grad is None:
        return None

    def add(tile: Tile) -> None:
        matrix, columns, product = tiling.by_group(tile, weights.value)
        np.matmul(matrix.transpose(0, 2, 1), product, out=columns)
        if tile.rows.start == 0:
            tile.images_grad.fill(0)
        col2im_(tile.columns, tiling.window, tile.rows.start, tile.images_grad)
        if tiling.is_last(tile):
            np.copyto(grad.value[tile.batch].transpose(1, 2, 3, 0), tile.images_grad)

    return lambda: grad.reserve(x.value.shape), add


# --- pooling --------------------------------------------------------------------------------------


@computes("pool2d")
def pool2d(op: Bound) -> Step:
    x, out, argmax = op.one("input"), op.one("out"), op.maybe("argmax")
    window, exclusive = _window(op, "size", "stride", "padding"), op.attrs["exclusive"]
    max_pool, average_pool = op.kernel(kernels.max_pool), op.kernel(kernels.average_pool)
    shape = op.vars[out.name].shape[1:]

    def run() -> None:
        planes = _planes(x.value)
        result = out.reserve((len(x.value), *shape))
        if argmax is None:
            average_pool(planes, window, exclusive, _planes(result))
        else:
            where = argmax.reserve(result.shape)
            max_pool(planes, window, _planes(result), _planes(where))

    return run


@computes("pool2d_grad")
def pool2d_grad(op: Bound) -> Step:
    x, grad, x_grad = op.one("input"), op.one("out@GRAD"), op.one("input@GRAD")
    argmax, exclusive = op.maybe("argmax"), op.attrs["exclusive"]
    window = _window(op, "size", "stride", "padding")
    max_pool_grad = op.kernel(kernels.max_pool_grad)
    average_pool_grad = op.kernel(kernels.average_pool_grad)

    def run() -> None:
        given, result = _planes(grad.value), _planes(x_grad.reserve(x.value.shape))
        if argmax is None:
            average_pool_grad(given, window, exclusive, result)
        else:
            where = _planes(argmax.value)
            max_pool_grad(_flat(given), _flat(where), _flat(result))

    return run


def _planes(images: Array) -> Array:
    """(rows, channels, height, width) → (planes, height, width)."""
    return images.reshape(images.shape[0] * images.shape[1], *images.shape[2:])


def _flat(planes: Array) -> Array:
    return planes.reshape(planes.shape[0], planes.shape[1] * planes.shape[2])
