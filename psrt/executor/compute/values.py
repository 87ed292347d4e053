"""Casts, constants, the initial loss gradient, one-hot rows, rows gathered by index."""

from __future__ import annotations

import math

import numpy as np

from psrt.core.errors import DataError
from psrt.core.types import I64, Array, Shape
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.kernels.ops import EagerBackend
from psrt.kernels.tables import rows


@computes("cast")
def cast(op: Bound) -> Step:
    x, out = op.one("x"), op.one("out")
    return lambda: np.copyto(out.reserve(x.value.shape), x.value, casting="unsafe")


@computes("cast_grad")
def cast_grad(op: Bound) -> Step:
    grad, x_grad = op.one("out@GRAD"), op.one("x@GRAD")

    def run() -> None:
        np.copyto(x_grad.reserve(grad.value.shape), grad.value, casting="unsafe")

    return run


@computes("assign")
def assign(op: Bound) -> Step:
    x, out = op.one("x"), op.one("out")
    return lambda: np.copyto(out.reserve(x.value.shape), x.value)


@computes("assign_grad")
def assign_grad(op: Bound) -> Step:
    grad, x_grad = op.one("out@GRAD"), op.one("x@GRAD")
    return lambda: x_grad.alias(grad.value)


@computes("zeros_like")
def zeros_like(op: Bound) -> Step:
    x, out = op.one("x"), op.one("out")
    return lambda: out.reserve(x.value.shape).fill(0)


@computes("ones_like")
def ones_like(op: Bound) -> Step:
    if op.op.role == "backward":  # a text may come from a psrt that has no `loss_gradient`
        return loss_gradient(op)
    x, out = op.one("x"), op.one("out")
    return lambda: out.reserve(x.value.shape).fill(1)


@computes("loss_gradient")
def loss_gradient(op: Bound) -> Step:
    x, out, context = op.one("x"), op.one("out"), op.context

    def record(commands: EagerBackend) -> None:
        result = out.reserve(x.value.shape)
        commands.fill(result, np.array(context.loss_gradient, result.dtype))

    return op.recorded(record)


@computes("fill_constant")
def fill_constant(op: Bound) -> Step:
    out, shape, value = op.one("out"), op.attrs["shape"], op.attrs["value"]
    return lambda: out.reserve(shape).fill(value)


@computes("constant")
def constant(op: Bound) -> Step:
    out, shape = op.one("out"), op.attrs["shape"]
    values = np.array(op.attrs["values"], out.dtype).reshape(shape)
    return lambda: np.copyto(out.reserve(shape), values)


@computes("fill_constant_batch_size_like")
def fill_constant_batch_size_like(op: Bound) -> Step:
    x, out = op.one("input"), op.one("out")
    inner, value = op.attrs["shape"][1:], op.attrs["value"]
    return lambda: out.reserve((len(x.value), *inner)).fill(value)


def _within(ids: Array, count: int, argument: str) -> I64:
    """`ids` flat; raises `DataError` unless all are in 0 … `count` − 1."""
    flat: I64 = ids.reshape(-1)
    if flat.size and not (flat.min() >= 0 and flat.max() < count):
        wrong = int(flat[(flat < 0) | (flat >= count)][0])
        raise DataError(f"Argument {argument} holds {wrong}, which is not one of 0 to {count - 1}.")
    return flat


def _picked(ids: Array) -> Shape:
    """The shape of `ids` without a last dimension of 1."""
    return ids.shape[:-1] if ids.ndim > 1 and ids.shape[-1] == 1 else ids.shape


@computes("one_hot")
def one_hot(op: Bound) -> Step:
    ids, out, depth = op.one("input"), op.one("out"), op.attrs["depth"]

    def run() -> None:
        flat = _within(ids.value, depth, "input")
        result = out.reserve((*_picked(ids.value), depth))
        result.fill(0)
        result.reshape(-1, depth)[np.arange(len(flat)), flat] = 1

    return run


@computes("gather")
def gather(op: Bound) -> Step:
    x, index, out = op.one("input"), op.one("index"), op.one("out")

    def run() -> None:
        flat = _within(index.value, len(x.value), "index")
        inner = x.value.shape[1:]
        result = out.reserve(_picked(index.value) + inner)
        # mode "raise" would make a copy of the result first.
        np.take(x.value, flat, axis=0, out=result.reshape(len(flat), *inner), mode="clip")

    return run


@computes("gather_grad")
def gather_grad(op: Bound) -> Step:
    x, index, grad = op.one("input"), op.one("index"), op.one("out@GRAD")
    x_grad, add_rows = op.one("input@GRAD"), op.kernel(rows.scatter_add_)

    def run() -> None:
        d = x_grad.reserve(x.value.shape)
        d.fill(0)
        at = index.value.reshape(-1).astype(np.int32)
        values = np.ascontiguousarray(grad.value).reshape(len(at), -1)
        add_rows(d.reshape(len(d), -1), at, values)

    return run


def _flat_positions(index: Array, sizes: Shape) -> I64:
    """Positions (…, k) in dimensions of these sizes as ones in the flat array of them.

    Raises `DataError` for one that is outside.
    """
    parts = index.reshape(-1, len(sizes))
    outside = (parts < 0) | (parts >= np.array(sizes))
    if outside.any():
        wrong = parts[outside.any(axis=1)][0].tolist()
        raise DataError(f"Argument index holds {wrong}, which is no position in {sizes}.")
    flat: I64 = np.zeros(len(parts), np.int64)
    for column, size in enumerate(sizes):
        flat = flat * size + parts[:, column]
    return flat


@computes("gather_nd")
def gather_nd(op: Bound) -> Step:
    x, index, out = op.one("input"), op.one("index"), op.one("out")

    def run() -> None:
        count = index.value.shape[-1]
        flat = _flat_positions(index.value, x.value.shape[:count])
        inner = x.value.shape[count:]
        result = out.reserve(index.value.shape[:-1] + inner)
        np.take(
            x.value.reshape(-1, *inner), flat, axis=0, out=result.reshape(-1, *inner), mode="clip"
        )

    return run


@computes("gather_nd_grad")
def gather_nd_grad(op: Bound) -> Step:
    x, index, grad = op.one("input"), op.one("index"), op.one("out@GRAD")
    x_grad, add_rows = op.one("input@GRAD"), op.kernel(rows.scatter_add_)

    def run() -> None:
        sizes = x.value.shape[: index.value.shape[-1]]
        d = x_grad.reserve(x.value.shape)
        d.fill(0)
        at = _flat_positions(index.value, sizes).astype(np.int32)
        values = np.ascontiguousarray(grad.value).reshape(len(at), -1)
        add_rows(d.reshape(math.prod(sizes), -1), at, values)

    return run


@computes("is_empty")
def is_empty(op: Bound) -> Step:
    x, out = op.one("x"), op.one("out")
    return lambda: out.reserve((1,)).fill(x.value.size == 0)


@computes("shape_of")
def shape_of(op: Bound) -> Step:
    x, out = op.one("input"), op.one("out")

    def run() -> None:
        out.reserve((x.value.ndim,))[:] = x.value.shape

    return run


@computes("set_state")
def set_state(op: Bound) -> Step:
    x, state = op.one("x"), op.one("state")
    return lambda: np.copyto(state.value, x.value.reshape(state.value.shape))
