"""Moving and renaming elements; where a view will do, nothing is copied."""

from __future__ import annotations

import math

import numpy as np

from psrt.core.types import Array, Shape
from psrt.executor.compute.registry import Bound, Step, computes, lie_apart, regrouped
from psrt.executor.memory import Cell
from psrt.graph.ops import ROWS
from psrt.kernels.ops import EagerBackend

# --- joining --------------------------------------------------------------------------------------


@computes("concat")
def concat(op: Bound) -> Step:
    xs, out, axis = op.all("x"), op.one("out"), op.attrs["axis"]

    def note(tape: EagerBackend) -> None:
        first = xs[0].value.shape
        width = sum(x.value.shape[axis] for x in xs)
        result = out.reserve((*first[:axis], width, *first[axis + 1 :]))
        rows, inner = math.prod(first[:axis]), math.prod(first[axis + 1 :])
        wide, start = result.reshape(rows, width * inner), 0
        for x in xs:
            columns = x.value.shape[axis] * inner
            part = x.value.reshape(rows, columns)
            tape.copy(part, wide[:, start : start + columns])
            start += columns

    return op.noted(note)


@computes("concat_grad")
def concat_grad(op: Bound) -> Step:
    xs, grad, targets = op.all("x"), op.one("out@GRAD"), op.many("x@GRAD")
    before = (slice(None),) * int(op.attrs["axis"])
    axis = op.attrs["axis"]

    def note(tape: EagerBackend) -> None:
        start = 0
        for x, target in zip(xs, targets, strict=True):
            stop = start + x.value.shape[axis]
            if target is not None:
                target.share(grad.value[(*before, slice(start, stop))])
            start = stop

    return op.noted(note)


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
                target.share(part)

    return run


# --- parts and repetitions ------------------------------------------------------------------------


def _part(op: Bound) -> tuple[slice, ...]:
    """The index of what a slice op takes."""
    index = [slice(None)] * (max(op.attrs["axes"], default=-1) + 1)
    for axis, start, end in zip(
        op.attrs["axes"], op.attrs["starts"], op.attrs["ends"], strict=True
    ):
        index[axis] = slice(start, end)
    return tuple(index)


@computes("slice")
def slice_of(op: Bound) -> Step:
    """A copy: kernels want rows that follow each other."""
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


def _repeated(shape: Shape, times: Shape) -> Shape:
    """`shape` with a dimension before each that counts its repetitions."""
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


def _rename(array: Array, shape: Shape, out: Cell) -> None:
    """Let `out` be `array` in another shape, of which one size may be -1."""
    if array.flags.c_contiguous:
        out.share(array.reshape(shape))
        return
    known = math.prod(size for size in shape if size != ROWS)
    sizes = tuple(array.size // known if size == ROWS else size for size in shape)
    np.copyto(out.reserve(sizes).reshape(array.shape), array)


@computes("reshape")
def reshape(op: Bound) -> Step:
    x, out, shape = op.one("x"), op.one("out"), op.attrs["shape"]
    return lambda: _rename(x.value, shape, out)


@computes("reshape_grad")
def reshape_grad(op: Bound) -> Step:
    """Columns of a wider gradient stay where they are if examples stay examples."""
    x, grad, x_grad = op.one("x"), op.one("out@GRAD"), op.one("x@GRAD")

    def run() -> None:
        shape, d = x.value.shape, grad.value
        if len(shape) > 1 and shape[:1] == d.shape[:1] and lie_apart(d):
            x_grad.share(regrouped(d, shape))
        else:
            _rename(d, shape, x_grad)

    return run


@computes("transpose")
def transpose(op: Bound) -> Step:
    x, out, perm = op.one("x"), op.one("out"), op.attrs["perm"]

    def run() -> None:
        turned = x.value.transpose(perm)
        np.copyto(out.reserve(turned.shape), turned)

    return run


@computes("transpose_grad")
def transpose_grad(op: Bound) -> Step:
    grad, x_grad = op.one("out@GRAD"), op.one("x@GRAD")
    back = tuple(int(axis) for axis in np.argsort(op.attrs["perm"]))

    def run() -> None:
        turned = grad.value.transpose(back)
        np.copyto(x_grad.reserve(turned.shape), turned)

    return run
