"""Sizes that a program takes from another var: `shape=[layers.shape(x)[0], 1]`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from psrt.core.errors import ProgramError
from psrt.core.types import Shape
from psrt.fluid.names import Variable
from psrt.graph import layers
from psrt.graph.ops import ANY, ROWS
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


def reshaping(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a reshaping, where the fixed size of a batch is −1.

    Rows that were merged become as many examples again as the data var of this size has. Lists of
    equally many elements become rows of them: a step refuses other lists.
    """
    x, shape = given["x"], plain_sizes("reshape", given["shape"])
    width = math.prod(shape[1:])
    if isinstance(x, Variable) and x.var.ragged and _joins_elements(x, shape):
        flat = x.program.call(layers.reshape, x, [ROWS, math.prod(x.var.shape[1:])])
        lists = x.program.call(layers.sequence_reshape, flat, width)
        return {**given, "x": x.program.call(layers.sequence_rows, lists), "shape": shape}
    has_rows = isinstance(x, Variable) and x.var.shape[:1] == (ROWS,)
    like = x.program.fixed_batches.get(shape[0]) if has_rows and shape else None
    if like is None:
        return {**given, "shape": shape}
    if ROWS in shape[1:] and ANY not in x.var.shape:
        x = x.program.call(layers.group_rows, x, x.program.variable(like))
    return {**given, "x": x, "shape": [ROWS, *shape[1:]]}


def _joins_elements(x: Variable, shape: Sequence[int]) -> bool:
    """Return whether several elements of a list are to be one row."""
    known = shape[:1] == [ROWS] and min(shape[1:], default=0) > 0
    return known and math.prod(shape[1:]) > math.prod(x.var.shape[1:])


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


__all__ = ["plain_sizes", "reshaping", "sizes_of"]
