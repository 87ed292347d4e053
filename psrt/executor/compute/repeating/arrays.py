"""Arrays of tensors: their elements lie along a dimension of their own."""

from __future__ import annotations

import numpy as np

from psrt.core.errors import ProgramError
from psrt.core.types import Array
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.executor.memory import Cell
from psrt.graph.ops import array_axis


@computes("empty")
def empty(op: Bound) -> Step:
    out, shape = op.one("out"), tuple(max(size, 0) for size in op.attrs["shape"])
    return lambda: out.reserve(shape).fill(0)


@computes("array_write")
def array_write(op: Bound) -> Step:
    array, x, i, out = op.each("array", "x", "i", "out")
    condition, axis = op.maybe("condition"), array_axis(op.shapes("array")[0])

    def run() -> None:
        if not holds(condition):
            np.copyto(out.reserve(array.value.shape), array.value)
            return
        at, before, shape = index_of(i), array.value.shape[axis], x.value.shape
        size = max(before, at + 1)
        result = out.reserve((*shape[:axis], size, *shape[axis:]))
        elements = np.moveaxis(result, axis, 0)
        if before:
            elements[:before] = np.moveaxis(array.value, axis, 0)
        elements[before:] = 0
        elements[at] = x.value

    return run


@computes("array_write_grad")
def array_write_grad(op: Bound) -> Step:
    array, x, i, grad = op.each("array", "x", "i", "out@GRAD")
    array_grads, x_grads = op.many("array@GRAD"), op.many("x@GRAD")
    condition, axis = op.maybe("condition"), array_axis(op.shapes("array")[0])

    def run() -> None:
        taken = holds(condition)
        d = np.moveaxis(grad.value, axis, 0)
        for target in array_grads:
            if target is not None:
                result = target.reserve(array.value.shape)
                elements = np.moveaxis(result, axis, 0)
                elements[:] = d[: len(elements)] if result.size else 0
                if taken and index_of(i) < len(elements):
                    elements[index_of(i)] = 0
        for target in x_grads:
            if target is not None:
                target.reserve(x.value.shape)[...] = d[index_of(i)] if taken else 0

    return run


@computes("array_read")
def array_read(op: Bound) -> Step:
    array, i, out = op.each("array", "i", "out")
    axis = array_axis(op.shapes("array")[0])

    def run() -> None:
        element = np.moveaxis(array.value, axis, 0)[_existing(array.value, i, axis)]
        out.reserve(element.shape)[...] = element

    return run


@computes("array_read_grad")
def array_read_grad(op: Bound) -> Step:
    array, i, grad, array_grad = op.each("array", "i", "out@GRAD", "array@GRAD")
    axis = array_axis(op.shapes("array")[0])

    def run() -> None:
        result = array_grad.reserve(array.value.shape)
        result.fill(0)
        np.moveaxis(result, axis, 0)[index_of(i)] = grad.value

    return run


@computes("array_length")
def array_length(op: Bound) -> Step:
    array, out = op.one("array"), op.one("out")
    axis = array_axis(op.shapes("array")[0])
    return lambda: out.reserve((1,)).fill(array.value.shape[axis])


def holds(condition: Cell | None) -> bool:
    """Return whether a condition holds; none does."""
    return condition is None or bool(condition.value.item())


def index_of(i: Cell) -> int:
    """Return the place of an element; raises `ProgramError` for a negative one."""
    at = int(i.value.item())
    if at < 0:
        raise ProgramError(f"An array of tensors was used at element {at}; the first is 0.")
    return at


def _existing(array: Array, i: Cell, axis: int) -> int:
    """The index, of an element that exists."""
    at, size = index_of(i), array.shape[axis]
    if at >= size:
        raise ProgramError(
            f"Element {at} of an array of {size} tensors was read.",
            hint="Write it first; array_length counts the elements.",
        )
    return at
