"""Convolution and its gradients: BLAS multiplies the filter and the columns of each tile.

Where a tile is one image, products are written into the maps, and where a filter sees single
pixels, the columns are the image: then nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from psrt.core.types import Array
from psrt.executor.compute.images.tiles import Tile, Tiling
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.kernels.ops import convolution as kernels


class Columns:
    """The inputs of each weight of a filter, tile by tile."""

    def __init__(self, op: Bound, tiling: Tiling) -> None:
        self._tiling, self._im2col = tiling, op.kernel(kernels.im2col)

    def of(self, tile: Tile, images: Array) -> Array:
        """(groups, weights, pixels · n) of `images` (all, C, H, W)."""
        seen = images[tile.batch]
        if self._tiling.is_pointwise and len(seen) == 1:
            return tile.matrices(seen[0, tile.channels])
        if tile.images.size:
            if self._tiling.is_first(tile):
                np.copyto(_by_lane(tile.images, tile.lanes), seen.transpose(1, 2, 3, 0))
            seen = tile.images
        first, top = tile.channels.start, tile.rows.start
        self._im2col(seen, self._tiling.window, tile.lanes, first, top, tile.columns)
        return tile.matrices(tile.columns)


def _by_lane(images: Array, lanes: int) -> Array:
    """(1, C, H, W · lanes) → (C, H, W, lanes)."""
    _, channels, height, width = images.shape
    return images.reshape(channels, height, width // lanes, lanes)


@computes("conv2d")
def conv2d(op: Bound) -> Step:
    x, weights, out = op.one("input"), op.one("filter"), op.one("out")
    bias, is_relu, tiling = op.maybe("bias"), op.attrs["activation"] == "relu", Tiling(op)
    columns, scatter_maps = Columns(op, tiling), op.kernel(kernels.scatter_maps)
    bias_maps_, no_bias = op.kernel(kernels.bias_maps_), np.zeros(tiling.out[0], op.dtype)
    shape = op.vars[out.name].shape[1:]

    def run() -> None:
        images = tiling.images(x.value)
        maps = tiling.maps(out.reserve((len(images), *shape)))
        added = no_bias if bias is None else bias.value
        in_place = tiling.size(len(images)).images == 1
        for tile in tiling.tiles(len(images)):
            matrices = tile.weights(weights.value[tile.filters])
            product = tile.part_of(maps) if in_place else tile.matrices(tile.product)
            np.matmul(matrices, columns.of(tile, images), out=product)
            if not in_place:
                first, pixel = tile.filters.start, tile.pixels.start
                scatter_maps(tile.product, added, is_relu, first, pixel, maps[tile.batch])
        if in_place and (is_relu or bias is not None):
            bias_maps_(maps, added, is_relu)

    return run


@computes("conv2d_grad")
def conv2d_grad(op: Bound) -> Step:
    x, maps, grad = op.one("input"), op.one("out"), op.one("out@GRAD")
    tiling, is_relu = Tiling(op), op.attrs["activation"] == "relu"
    gather_maps = op.kernel(kernels.gather_maps)
    parts = [_bias_part(op), _filter_part(op, tiling), _input_part(op, tiling)]
    begun = [part for part in parts if part is not None]

    def run() -> None:
        images = tiling.images(x.value)
        added = [begin(images) for begin in begun]
        # A gradient may be some columns of a wider one, whose rows are apart.
        given, seen = tiling.maps(grad.value), tiling.maps(maps.value)
        in_place = tiling.size(len(images)).images == 1 and not is_relu
        for tile in tiling.tiles(len(images)):
            if in_place:
                product = tile.part_of(given)
            else:
                first, pixel, batch = tile.filters.start, tile.pixels.start, tile.batch
                gather_maps(given[batch], seen[batch], is_relu, first, pixel, tile.product)
                product = tile.matrices(tile.product)
            for add in added:
                add(tile, product)

    return run


Add: TypeAlias = Callable[[Tile, Array], None]
"""Adds what the gradient of the product of a tile, (groups, filters, pixels · n), contributes."""
Part: TypeAlias = Callable[[Array], Add]
"""The gradient of one input: begins a step with the images (n, C, H, W)."""


def _bias_part(op: Bound) -> Part | None:
    grad, shape = op.maybe("bias@GRAD"), op.shapes("filter")[0][:1]
    if grad is None:
        return None

    def begin(images: Array) -> Add:
        sums = grad.reserve(shape)
        sums.fill(0)

        def add(tile: Tile, product: Array) -> None:
            sums[tile.filters] += product.sum(axis=2).reshape(-1)

        return add

    return begin


def _filter_part(op: Bound, tiling: Tiling) -> Part | None:
    grad, columns = op.maybe("filter@GRAD"), Columns(op, tiling)
    if grad is None:
        return None

    def begin(images: Array) -> Add:
        total = grad.reserve(tiling.filter)
        if not len(images):
            total.fill(0)

        def add(tile: Tile, product: Array) -> None:
            seen = columns.of(tile, images).transpose(0, 2, 1)
            part = total[tile.filters]
            if tile.batch.start == 0 == tile.rows.start:
                np.matmul(product, seen, out=tile.weights(part))
            else:
                np.matmul(product, seen, out=tile.weights(tile.sums))
                part += tile.sums

        return add

    return begin


def _input_part(op: Bound, tiling: Tiling) -> Part | None:
    grad, col2im_ = op.maybe("input@GRAD"), op.kernel(kernels.col2im_)
    x, weights = op.one("input"), op.one("filter")
    if grad is None:
        return None

    def begin(images: Array) -> Add:
        result = tiling.images(grad.reserve(x.value.shape))

        def add(tile: Tile, product: Array) -> None:
            matrices = tile.weights(weights.value[tile.filters]).transpose(0, 2, 1)
            into = result[tile.batch]
            if tiling.is_pointwise and len(into) == 1:
                np.matmul(matrices, product, out=tile.matrices(into[0, tile.channels]))
                return
            np.matmul(matrices, product, out=tile.matrices(tile.columns))
            target = tile.images_grad if tile.images.size else into
            if tile.rows.start == 0:
                target[:, tile.channels] = 0
            first, top = tile.channels.start, tile.rows.start
            col2im_(tile.columns, tiling.window, tile.lanes, first, top, target)
            if tile.images.size and tiling.is_last(tile):
                np.copyto(into.transpose(1, 2, 3, 0), _by_lane(target, tile.lanes))

        return add

    return begin
