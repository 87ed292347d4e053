"""Ops that move or rename elements and compute nothing."""

from __future__ import annotations

import math

from psrt.core.types import Shape
from psrt.graph.ops.table import ROWS, Call, Types, define


@define("concat", inputs="x*")
def concat(call: Call) -> Types:
    """attrs: axis, 1 or more: examples stay apart."""
    xs, axis = call.many("x"), call.attrs["axis"]
    first = xs[0].shape
    call.need(0 < axis < len(first), f"argument axis {axis} is not between 1 and {len(first) - 1}")
    for x in xs:
        fits = x.dtype == xs[0].dtype and without(x.shape, axis) == without(first, axis)
        call.need(fits, f"argument input has {xs[0]} and {x}, which differ beside axis {axis}")
    width = sum(x.shape[axis] for x in xs)
    return {"out": xs[0].reshaped((*first[:axis], width, *first[axis + 1 :]))}


def without(shape: Shape, axis: int) -> Shape:
    return shape[:axis] + shape[axis + 1 :]


@define("reshape", inputs="x")
def reshape(call: Call) -> Types:
    """attrs: shape, whose first dimension is ROWS (kept, merged or split at run time)."""
    x, shape = call.one("x"), call.attrs["shape"]
    call.need(
        x.shape[:1] == (ROWS,) and shape[:1] == (ROWS,),
        f"argument shape {shape} or {x} has no rows",
    )
    call.need(ROWS not in shape[1:], f"argument shape {shape} leaves two dimensions open")
    before, after = math.prod(x.shape[1:]), math.prod(shape[1:])
    fits = after > 0 and (before % after == 0 or after % before == 0)
    call.need(fits, f"argument shape {shape} does not fit argument x of shape {x.shape}")
    return {"out": x.reshaped(shape)}
