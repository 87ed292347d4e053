"""Maxima and means of windows of images."""

from __future__ import annotations

from psrt.core.types import Array
from psrt.executor.compute.images.tiles import window_of
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.kernels.ops import images as kernels


@computes("pool2d")
def pool2d(op: Bound) -> Step:
    x, out, argmax = op.one("input"), op.one("out"), op.maybe("argmax")
    window, exclusive = window_of(op, "size", "stride", "padding"), op.attrs["exclusive"]
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
    window = window_of(op, "size", "stride", "padding")
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
