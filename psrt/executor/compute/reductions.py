"""Sums, extremes and products; running sums; argmax and top k; norms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from psrt.core.types import Array, Shape
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.kernels.ops import nn

# --- over dimensions ------------------------------------------------------------------------------


@computes("mean")
def mean(op: Bound) -> Step:
    x, out = op.one("x"), op.one("out")
    return op.recorded(lambda commands: commands.mean(x.value, out.reserve(())))


@computes("mean_grad")
def mean_grad(op: Bound) -> Step:
    x, grad, x_grad = op.one("x"), op.one("out@GRAD"), op.one("x@GRAD")
    return op.recorded(
        lambda commands: commands.fill(x_grad.reserve(x.value.shape), grad.value, x.value.size)
    )


def _kept(shape: Shape, axes: tuple[int, ...]) -> Shape:
    """`shape` with 1 for each reduced dimension."""
    return tuple(1 if i in axes else size for i, size in enumerate(shape))


def _reduce(op: Bound, function: Callable[..., Array]) -> Step:
    x, out = op.one("x"), op.one("out")
    axes, keep = op.attrs["axes"], op.attrs["keep_dims"]

    def run() -> None:
        shape = x.value.shape
        left = tuple(size for i, size in enumerate(shape) if i not in axes)
        result = out.reserve(_kept(shape, axes) if keep else left)
        function(x.value, axis=axes, keepdims=keep, out=result)

    return run


computes("reduce_sum")(lambda op: _reduce(op, np.sum))
computes("reduce_mean")(lambda op: _reduce(op, np.mean))
computes("reduce_max")(lambda op: _reduce(op, np.max))
computes("reduce_min")(lambda op: _reduce(op, np.min))
computes("reduce_prod")(lambda op: _reduce(op, np.prod))


@computes("reduce_sum_grad")
def reduce_sum_grad(op: Bound) -> Step:
    x, grad, x_grad, axes = op.one("x"), op.one("out@GRAD"), op.one("x@GRAD"), op.attrs["axes"]

    def run() -> None:
        shape = x.value.shape
        np.copyto(x_grad.reserve(shape), grad.value.reshape(_kept(shape, axes)))

    return run


@computes("reduce_mean_grad")
def reduce_mean_grad(op: Bound) -> Step:
    x, grad, x_grad, axes = op.one("x"), op.one("out@GRAD"), op.one("x@GRAD"), op.attrs["axes"]

    def run() -> None:
        shape, d = x.value.shape, grad.value
        count = x.value.size // max(d.size, 1)
        np.divide(d.reshape(_kept(shape, axes)), count, out=x_grad.reserve(shape))

    return run


def _extreme_grad(op: Bound) -> Step:
    x, out, axes = op.one("x"), op.one("out"), op.attrs["axes"]
    grad, x_grad = op.one("out@GRAD"), op.one("x@GRAD")

    def run() -> None:
        shape = x.value.shape
        kept, d = _kept(shape, axes), x_grad.reserve(shape)
        np.equal(x.value, out.value.reshape(kept), out=d, casting="unsafe")
        np.multiply(d, grad.value.reshape(kept), out=d)

    return run


computes("reduce_max_grad")(_extreme_grad)
computes("reduce_min_grad")(_extreme_grad)


@computes("reduce_prod_grad")
def reduce_prod_grad(op: Bound) -> Step:
    """d · the product of the elements before one and of those after it.

    An element may be 0, so out / x is not usable.
    """
    x, axes = op.one("x"), op.attrs["axes"]
    grad, x_grad = op.one("out@GRAD"), op.one("x@GRAD")
    own, before, after = op.own(), op.own(), op.scratch()
    inner = range(-len(axes), 0)

    def run() -> None:
        moved = np.moveaxis(x.value, axes, inner)
        kept = own.reserve(moved.shape)
        np.copyto(kept, moved)
        rows = kept.reshape(grad.value.size, -1)
        head, tail = before.reserve(rows.shape), after.reserve(rows.shape)
        _running_product(rows[:, :-1], head)
        _running_product(rows[:, :0:-1], tail[:, ::-1])
        np.multiply(head, tail, out=rows)
        rows *= grad.value.reshape(-1, 1)
        np.copyto(np.moveaxis(x_grad.reserve(x.value.shape), axes, inner), kept)

    return run


def _running_product(rows: Array, out: Array) -> None:
    """`out` (n, k + 1): 1 and the cumulative products of `rows` (n, k)."""
    out[:, :1] = 1
    np.cumprod(rows, axis=1, out=out[:, 1:])


# --- along one dimension --------------------------------------------------------------------------


def _running_sum(x: Array, axis: int, exclusive: bool, reverse: bool, out: Array) -> None:
    x, out = np.moveaxis(x, axis, -1), np.moveaxis(out, axis, -1)
    if reverse:
        x, out = x[..., ::-1], out[..., ::-1]
    if exclusive:
        out[..., :1] = 0
        x, out = x[..., :-1], out[..., 1:]
    np.cumsum(x, axis=-1, out=out)


@computes("cumsum")
def cumsum(op: Bound) -> Step:
    x, out = op.one("x"), op.one("out")
    axis, exclusive, reverse = op.attrs["axis"], op.attrs["exclusive"], op.attrs["reverse"]
    return lambda: _running_sum(x.value, axis, exclusive, reverse, out.reserve(x.value.shape))


@computes("cumsum_grad")
def cumsum_grad(op: Bound) -> Step:
    grad, x_grad = op.one("out@GRAD"), op.one("x@GRAD")
    axis, exclusive, reverse = op.attrs["axis"], op.attrs["exclusive"], op.attrs["reverse"]

    def run() -> None:
        d = grad.value
        _running_sum(d, axis, exclusive, not reverse, x_grad.reserve(d.shape))

    return run


def _position(op: Bound, function: Callable[..., Array]) -> Step:
    x, out, axis = op.one("x"), op.one("out"), op.attrs["axis"]

    def run() -> None:
        shape = x.value.shape
        function(x.value, axis=axis, out=out.reserve(shape[:axis] + shape[axis + 1 :]))

    return run


computes("argmax")(lambda op: _position(op, np.argmax))
computes("argmin")(lambda op: _position(op, np.argmin))


@computes("topk")
def topk(op: Bound) -> Step:
    x, out, indices, k = op.one("input"), op.one("out"), op.one("indices"), op.attrs["k"]
    largest = op.kernel(nn.topk)

    def run() -> None:
        shape = x.value.shape
        values, at = out.reserve((*shape[:-1], k)), indices.reserve((*shape[:-1], k))
        rows = np.ascontiguousarray(x.value).reshape(-1, shape[-1])
        largest(rows, values.reshape(-1, k), at.reshape(-1, k))

    return run


@computes("topk_grad")
def topk_grad(op: Bound) -> Step:
    x, indices, grad = op.one("input"), op.one("indices"), op.one("out@GRAD")
    x_grad = op.one("input@GRAD")

    def run() -> None:
        d = x_grad.reserve(x.value.shape)
        d.fill(0)
        np.put_along_axis(d, indices.value, grad.value, axis=-1)

    return run


@computes("l2_normalize")
def l2_normalize(op: Bound) -> Step:
    x, out, norm = op.one("x"), op.one("out"), op.one("norm")
    axis, epsilon = op.attrs["axis"], op.attrs["epsilon"]

    def run() -> None:
        shape = x.value.shape
        result, length = out.reserve(shape), norm.reserve((*shape[:axis], 1, *shape[axis + 1 :]))
        np.sum(np.square(x.value, out=result), axis=axis, keepdims=True, out=length)
        length += epsilon
        np.sqrt(length, out=length)
        np.divide(x.value, length, out=result)

    return run


@computes("l2_normalize_grad")
def l2_normalize_grad(op: Bound) -> Step:
    """(d − out Σ(d out)) / norm: the part of d that is orthogonal to out."""
    out, norm, axis = op.one("out"), op.one("norm"), op.attrs["axis"]
    grad, x_grad = op.one("out@GRAD"), op.one("x@GRAD")

    def run() -> None:
        d = x_grad.reserve(out.value.shape)
        along = np.multiply(grad.value, out.value, out=d).sum(axis=axis, keepdims=True)
        np.multiply(out.value, along, out=d)
        np.subtract(grad.value, d, out=d)
        np.divide(d, norm.value, out=d)

    return run
