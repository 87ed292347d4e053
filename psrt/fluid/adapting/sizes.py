"""Sizes that a program takes from another var: `shape=[layers.shape(x)[0], 1]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psrt.core.errors import ProgramError
from psrt.core.types import Shape
from psrt.fluid.names import Variable
from psrt.graph.ops import ROWS
from psrt.graph.program import Op, Program

_PASSED_ON = ("assign", "cast", "reshape")


def sizes_of(layer: str, shape: Any) -> tuple[Shape, Variable | None]:
    """Return sizes, −1 for examples, and the var that has as many examples, None without −1.

    Elements of `shape` are numbers, or vars that `layers.shape` made. Raises `ProgramError` for
    vars that other ops have computed, and for an unknown size behind the first.
    """
    if isinstance(shape, Variable):
        like = _source(layer, shape)[0]
        return like.var.shape, like if ROWS in like.var.shape else None
    found = [_size(layer, size) for size in shape]
    likes = [like for size, like in found if size == ROWS and like is not None]
    return tuple(size for size, _ in found), likes[0] if likes else None


def plain_sizes(layer: str, shape: Sequence[Any]) -> list[int]:
    """Return the sizes of a reshaping, where −1 is a size that is known at run time alone."""
    return [_size(layer, size)[0] for size in shape]


def _size(layer: str, size: Any) -> tuple[int, Variable | None]:
    if not isinstance(size, Variable):
        return int(size), None
    like, dimension = _source(layer, size)
    return like.var.shape[dimension], like


def _source(layer: str, size: Variable) -> tuple[Variable, int]:
    """The var whose size this is, and its dimension."""
    program: Program = size.program.graph
    name, dimension = size.var.name, 0
    while (op := _producer(program, name)) is not None:
        if op.type == "shape_of":
            return size.program.variable(op.inputs["input"][0]), dimension
        if op.type == "slice":
            dimension += op.attrs["starts"][0]
        elif op.type not in _PASSED_ON:
            break
        (name,) = op.reads()
    raise ProgramError(
        f"layers.{layer} was given the size {size.name}, which is computed by ops.",
        hint="Sizes are numbers, or parts of layers.shape(x).",
    )


def _producer(program: Program, name: str) -> Op | None:
    return next((op for op in reversed(program.ops) if name in op.writes()), None)


__all__ = ["plain_sizes", "sizes_of"]
