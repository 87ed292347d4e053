"""Tiles of a convolution: the pieces whose matrix products BLAS computes one by one.

A tile is a band of the output rows of a few images and groups, whose columns fit into the cache.
The columns of a whole batch would go through memory (MNIST, batch 64: 12 MB); to compute them again
for the gradient is cheaper than to keep them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from psrt.core.types import I64, Array, Shape
from psrt.executor.compute.registry import Bound

TILE_ELEMENTS = 1 << 18  # 1 MB of columns: what a level 2 cache holds
TILE_PIXELS = 512  # with fewer, BLAS spends its time on the filter
LANES = 16  # a cache line of float32
SHORT_ROW = 16  # pixels; images whose rows are no longer are interleaved


class TileSize(NamedTuple):
    """Images, groups and output rows of a tile; the last ones of a batch may be smaller."""

    images: int
    groups: int
    rows: int
    is_interleaved: bool


class Tile(NamedTuple):
    """Parts of the batch, of the groups and of the output rows, and memory for them.

    `columns` (channels, kh, kw, n / lanes, rows, ow · lanes) and `product` (filters, n / lanes,
    pixels, lanes); `sums` is like the filter; `images` and `images_grad` (1, C, H, W · lanes) are
    empty unless images are interleaved. `pixels` are those of the output rows.
    """

    batch: slice
    groups: slice
    channels: slice
    filters: slice
    rows: slice
    pixels: slice
    images: Array
    images_grad: Array
    sums: Array
    columns: Array
    product: Array

    @property
    def lanes(self) -> int:
        return int(self.product.shape[3])

    def matrices(self, array: Array) -> Array:
        """Columns or a product as one matrix for each group, (groups, …, pixels · n)."""
        return array.reshape(self._count, -1, self.product[0].size)

    def weights(self, filters: Array) -> Array:
        """Filters of the tile as one matrix for each group, (groups, filters, weights)."""
        return filters.reshape(self._count, -1, self.sums[0].size)

    def part_of(self, maps: Array) -> Array:
        """The part of `maps` (n, filters, all pixels) in a tile of one image, by group."""
        part = maps[self.batch.start, self.filters, self.pixels]
        return part.reshape(self._count, -1, part.shape[1])

    @property
    def _count(self) -> int:
        return _length(self.groups)


class Tiling:
    """The tiles of one convolution; everything except the batch size is known in advance.

    `image` is (C, H, W), `out` (filters, height, width). A filter of single pixels takes each image
    as one row of pixels.
    """

    def __init__(self, op: Bound) -> None:
        self.image, self.filter = op.shapes("input")[0][1:], op.shapes("filter")[0]
        self.out = op.vars[op.one("out").name].shape[1:]
        self.groups = op.attrs["groups"]
        self.window = window_of(op, "stride", "padding", "dilation")
        is_dense = tuple(op.attrs["stride"]) == (1, 1) and not any(op.attrs["padding"])
        self.is_pointwise = self.filter[2:] == (1, 1) and is_dense
        if self.is_pointwise:
            self.image, self.out = _in_one_row(self.image), _in_one_row(self.out)
        self._memory = op.scratch()

    def images(self, x: Array) -> Array:
        """The batch `x` as contiguous images (n, C, H, W)."""
        return np.ascontiguousarray(x).reshape(len(x), *self.image)

    def maps(self, x: Array) -> Array:
        """The outputs, or their gradients, as contiguous maps (n, filters, pixels)."""
        return np.ascontiguousarray(x).reshape(len(x), self.out[0], self.out[1] * self.out[2])

    def size(self, count: int) -> TileSize:
        """The size of the tiles of `count` images."""
        _, height, width = self.out
        each = math.prod(self.filter[1:])  # weights of a filter
        fitting = TILE_ELEMENTS // (self.groups * each * height * width)
        if width <= SHORT_ROW:
            fitting = min(fitting, LANES)
        images = max(min(max(fitting, -(-TILE_PIXELS // (height * width))), count), 1)
        across = width * images
        rows = min(max(TILE_ELEMENTS // (each * across), -(-TILE_PIXELS // across)), height)
        groups = min(max(TILE_ELEMENTS // (each * rows * across), 1), self.groups)
        return TileSize(images, groups, rows, images > 1 and width <= SHORT_ROW)

    def tiles(self, count: int) -> Iterator[Tile]:
        """The tiles of `count` images: band by band, for each part of the groups and images."""
        size, width = self.size(count), self.out[2]
        channels, filters = (n // self.groups for n in (self.image[0], self.out[0]))
        flat = self._memory.reserve((sum(map(math.prod, self._shapes(size))),))
        memory: dict[TileSize, list[Array]] = {}
        for batch in _parts(count, size.images):
            for groups in _parts(self.groups, size.groups):
                inputs, outputs = _times(groups, channels), _times(groups, filters)
                for rows in _parts(self.out[1], size.rows):
                    counts = _length(batch), _length(groups), _length(rows)
                    part = TileSize(*counts, size.is_interleaved)
                    if part not in memory:
                        memory[part] = list(_cut(flat, self._shapes(part)))
                    places = batch, groups, inputs, outputs, rows, _times(rows, width)
                    yield Tile(*places, *memory[part])

    def is_first(self, tile: Tile) -> bool:
        """True for the first tile of its images."""
        return bool(tile.groups.start == 0 == tile.rows.start)

    def is_last(self, tile: Tile) -> bool:
        """True for the last tile of its images."""
        return bool(tile.groups.stop == self.groups and tile.rows.stop == self.out[1])

    def _shapes(self, size: TileSize) -> list[Shape]:
        """Shapes of the arrays of a tile; those kept for the next tile come first."""
        images, groups, rows, is_interleaved = size
        lanes, width = images if is_interleaved else 1, self.out[2]
        inner = (1, *self.image[:2], self.image[2] * lanes) if is_interleaved else (0, 0, 0, 0)
        channels, *window = self.filter[1:]
        filters = self.filter[0] // self.groups * groups
        columns = (channels * groups, *window, images // lanes, rows, width * lanes)
        product = (filters, images // lanes, rows * width, lanes)
        return [inner, inner, (filters, channels, *window), columns, product]


def _parts(count: int, size: int) -> Iterator[slice]:
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


def _length(part: slice) -> int:
    return int(part.stop - part.start)


def _times(part: slice, factor: int) -> slice:
    return slice(part.start * factor, part.stop * factor)


def _cut(flat: Array, shapes: list[Shape]) -> Iterator[Array]:
    start = 0
    for shape in shapes:
        stop = start + math.prod(shape)
        yield flat[start:stop].reshape(shape)
        start = stop


def _in_one_row(image: Shape) -> Shape:
    return image[0], 1, image[1] * image[2]


def window_of(op: Bound, *names: str) -> I64:
    """Pairs as kernels read them: of a padding, that before the image."""
    return np.array([op.attrs[name][:2] for name in names], np.int64).reshape(-1)
