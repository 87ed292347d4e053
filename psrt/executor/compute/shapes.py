"""Joining, slicing, reshaping and transposing; a view where possible, else a copy."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from psrt.core.errors import DataError
from psrt.core.types import Array, Shape
from psrt.executor.compute.registry import Bound, Step, are_strided, computes, reshape_strided
from psrt.executor.memory import Cell, GradientCell
from psrt.graph.ops import ANY, ROWS
from psrt.kernels.ops import EagerBackend

# --- joining --------------------------------------------------------------------------------------


@computes("concat")
def concat(op: Bound) -> Step:
    xs, out, axis = op.all("x"), op.one("out"), op.attrs["axis"]

    def record(commands: EagerBackend) -> None:
        first = xs[0].value.shape
        width = sum(x.value.shape[axis] for x in xs)
        result = out.reserve((*first[:axis], width, *first[axis + 1 :]))
        rows, inner = math.prod(first[:axis]), math.prod(first[axis + 1 :])
        wide, start = result.reshape(rows, width * inner), 0
        for x in xs:
            columns = x.value.shape[axis] * inner
            part = x.value.reshape(rows, columns)
            commands.copy(part, wide[:, start : start + columns])
            start += columns

    return op.recorded(record)


@computes("concat_grad")
def concat_grad(op: Bound) -> Step:
    xs, grad, targets = op.all("x"), op.one("out@GRAD"), op.many("x@GRAD")
    before = (slice(None),) * int(op.attrs["axis"])
    axis = op.attrs["axis"]

    def run() -> None:
        start = 0
        for x, target in zip(xs, targets, strict=True):
            stop = start + x.value.shape[axis]
            if target is not None:
                target.alias(grad.value[(*before, slice(start, stop))])
            start = stop

    # Gradients of parameters are copied at once, so recorded ops before must have run by then.
    copies = any(isinstance(target, GradientCell) for target in targets)
    return run if copies else op.recorded(lambda commands: run())


@computes("stack")
def stack(op: Bound) -> Step:
    xs, out, axis = op.all("x"), op.one("out"), op.attrs["axis"]

    def run() -> None:
        shape = xs[0].value.shape
        result = out.reserve((*shape[:axis], len(xs), *shape[axis:]))
        np.stack([x.value for x in xs], axis=axis, out=result)

    return run


@computes("stack_grad")
def stack_grad(op: Bound) -> Step:
    grad, targets, axis = op.one("out@GRAD"), op.many("x@GRAD"), op.attrs["axis"]

    def run() -> None:
        for part, target in zip(np.moveaxis(grad.value, axis, 0), targets, strict=True):
            if target is not None:
                target.alias(part)

    return run


# --- parts and repetitions ------------------------------------------------------------------------


def _part(op: Bound) -> tuple[slice, ...]:
    """The index of a slice op."""
    index = [slice(None)] * (max(op.attrs["axes"], default=-1) + 1)
    for axis, start, end in zip(
        op.attrs["axes"], op.attrs["starts"], op.attrs["ends"], strict=True
    ):
        index[axis] = slice(start, end)
    return tuple(index)


@computes("slice")
def slice_of(op: Bound) -> Step:
    """A copy, because kernels read contiguous rows."""
    x, out, part = op.one("input"), op.one("out"), _part(op)

    def run() -> None:
        found = x.value[part]
        np.copyto(out.reserve(found.shape), found)

    return run


@computes("slice_grad")
def slice_grad(op: Bound) -> Step:
    x, grad, x_grad, part = op.one("input"), op.one("out@GRAD"), op.one("input@GRAD"), _part(op)

    def run() -> None:
        d = x_grad.reserve(x.value.shape)
        d.fill(0)
        d[part] = grad.value

    return run


def _between(op: Bound) -> Callable[[], tuple[slice, ...]]:
    """A function that returns the index of a step."""
    start, end = op.one("start"), op.one("end")
    before = (slice(None),) * int(op.attrs["axis"])
    return lambda: (*before, slice(int(start.value.item()), int(end.value.item())))


@computes("slice_between")
def slice_between(op: Bound) -> Step:
    x, out, part = op.one("input"), op.one("out"), _between(op)

    def run() -> None:
        found = x.value[part()]
        np.copyto(out.reserve(found.shape), found)

    return run


@computes("slice_between_grad")
def slice_between_grad(op: Bound) -> Step:
    grad, x_grad, part = op.one("out@GRAD"), op.one("input@GRAD"), _between(op)
    x = op.one("input")

    def run() -> None:
        d = x_grad.reserve(x.value.shape)
        d.fill(0)
        d[part()] = grad.value

    return run


def _repeated(shape: Shape, times: Shape) -> Shape:
    """`shape` with a dimension of repetitions before each dimension."""
    return tuple(size for pair in zip(times, shape, strict=True) for size in pair)


@computes("expand")
def expand(op: Bound) -> Step:
    x, out, times = op.one("x"), op.one("out"), op.attrs["expand_times"]
    once = (1,) * len(times)

    def run() -> None:
        shape = x.value.shape
        result = out.reserve(tuple(size * n for size, n in zip(shape, times, strict=True)))
        np.copyto(result.reshape(_repeated(shape, times)), x.value.reshape(_repeated(shape, once)))

    return run


@computes("expand_grad")
def expand_grad(op: Bound) -> Step:
    x, grad, x_grad, times = (
        op.one("x"),
        op.one("out@GRAD"),
        op.one("x@GRAD"),
        op.attrs["expand_times"],
    )
    repetitions = tuple(range(0, 2 * len(times), 2))

    def run() -> None:
        shape = x.value.shape
        copies = grad.value.reshape(_repeated(shape, times))
        np.sum(copies, axis=repetitions, out=x_grad.reserve(shape))

    return run


# --- other shapes ---------------------------------------------------------------------------------


def _open_sizes(array: Array, before: Shape, shape: Shape) -> Shape:
    """`shape` with what is known of its open sizes at run time; one may stay -1.

    Sizes that are open in `before`, the declared shape of `array`, too, are its own.
    """
    if ANY not in shape:
        return shape
    return tuple(
        array.shape[i] if size < 0 and i < len(before) and before[i] == size else max(size, ROWS)
        for i, size in enumerate(shape)
    )


def _reshape_into(array: Array, shape: Shape, out: Cell) -> None:
    """Set `out` to `array` in another shape, of which one size may be -1."""
    if array.flags.c_contiguous:
        out.alias(array.reshape(shape))
        return
    known = math.prod(size for size in shape if size != ROWS)
    sizes = tuple(array.size // known if size == ROWS else size for size in shape)
    np.copyto(out.reserve(sizes).reshape(array.shape), array)


@computes("reshape")
def reshape(op: Bound) -> Step:
    x, out, shape = op.one("x"), op.one("out"), op.attrs["shape"]
    (before,) = op.shapes("x")
    return lambda: _reshape_into(x.value, _open_sizes(x.value, before, shape), out)


@computes("reshape_grad")
def reshape_grad(op: Bound) -> Step:
    """Strided columns of a wider gradient are not copied if the first dimension is unchanged."""
    x, grad, x_grad = op.one("x"), op.one("out@GRAD"), op.one("x@GRAD")

    def run() -> None:
        shape, d = x.value.shape, grad.value
        if len(shape) > 1 and shape[:1] == d.shape[:1] and are_strided(d):
            x_grad.alias(reshape_strided(d, shape))
        else:
            _reshape_into(d, shape, x_grad)

    return run


@computes("open_sizes")
def open_sizes(op: Bound) -> Step:
    x, out, ndim = op.one("x"), op.one("out"), len(op.attrs["shape"])

    def run() -> None:
        shape = x.value.shape
        _reshape_into(x.value, (1,) * (ndim - len(shape)) + shape, out)

    return run


@computes("group_rows")
def group_rows(op: Bound) -> Step:
    x, like, out = op.one("x"), op.one("like"), op.one("out")

    def run() -> None:
        rows, groups = len(x.value), len(like.value)
        if rows % max(1, groups):
            raise DataError(f"{rows} rows are no {groups} groups of equal sizes.")
        sizes = (groups, rows // max(1, groups), *x.value.shape[1:])
        _reshape_into(x.value, sizes, out)

    return run


@computes("open_sizes_grad")
@computes("group_rows_grad")
def in_shape_of_x(op: Bound) -> Step:
    x, grad, x_grad = op.one("x"), op.one("out@GRAD"), op.one("x@GRAD")
    return lambda: _reshape_into(grad.value, x.value.shape, x_grad)


@computes("transpose")
def transpose(op: Bound) -> Step:
    x, out, perm = op.one("x"), op.one("out"), op.attrs["perm"]

    def run() -> None:
        transposed = x.value.transpose(perm)
        np.copyto(out.reserve(transposed.shape), transposed)

    return run


@computes("transpose_grad")
def transpose_grad(op: Bound) -> Step:
    grad, x_grad = op.one("out@GRAD"), op.one("x@GRAD")
    back = tuple(int(axis) for axis in np.argsort(op.attrs["perm"]))

    def run() -> None:
        transposed = grad.value.transpose(back)
        np.copyto(x_grad.reserve(transposed.shape), transposed)

    return run
