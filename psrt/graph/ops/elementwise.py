"""Ops that work element by element: arithmetic with broadcasting, activations."""

from __future__ import annotations

from psrt.core.types import Shape
from psrt.graph.ops.table import ROWS, Call, Mismatch, Types, define


def aligned(y: Shape, ndim: int, axis: int) -> Shape:
    """`y` with ones behind it so that its first dimension stands at `axis` of `ndim` ones.

    `axis` -1 aligns the last dimensions, as numpy does.
    """
    if axis < 0:
        return y
    return y + (1,) * (ndim - axis - len(y))


def broadcast(x: Shape, y: Shape) -> Shape:
    """The numpy rule; ROWS fits ROWS and 1."""
    ndim = max(len(x), len(y))
    pairs = zip((1,) * (ndim - len(x)) + x, (1,) * (ndim - len(y)) + y, strict=True)
    out = []
    for a, b in pairs:
        if a != b and 1 not in (a, b):
            raise Mismatch(f"argument y of shape {y} does not broadcast to argument x of shape {x}")
        out.append(b if a == 1 else a)
    return tuple(out)


def arithmetic(call: Call) -> Types:
    """attrs: axis, where the dimensions of y begin in x (-1: at the end)."""
    x, y = call.need_float("x"), call.need_float("y")
    call.need(x.dtype == y.dtype, f"argument y is {y}, argument x is {x}")
    y_shape = aligned(y.shape, len(x.shape), call.attrs["axis"])
    return {"out": x.reshaped(broadcast(x.shape, y_shape))}


define("elementwise_add", inputs="x y")(arithmetic)
define("elementwise_sub", inputs="x y")(arithmetic)
define("elementwise_mul", inputs="x y")(arithmetic)
define("elementwise_div", inputs="x y")(arithmetic)


def activation(call: Call) -> Types:
    return {"out": call.need_float("x")}


define("relu", inputs="x", ragged="x")(activation)
define("sigmoid", inputs="x", ragged="x")(activation)
define("tanh", inputs="x", ragged="x")(activation)


@define("softmax", inputs="x")
def softmax(call: Call) -> Types:
    """Over the last dimension."""
    x = call.need_float("x")
    call.need(len(x.shape) > 1 and x.shape[-1] != ROWS, f"argument x has no last dimension: {x}")
    return {"out": x}


@define("sum", inputs="x*", ragged="x")
def sum_all(call: Call) -> Types:
    """The elementwise sum of vars of one type."""
    first, *others = call.many("x")
    for x in others:
        call.need(x == first, f"argument x has parts of different types: {first} and {x}")
    return {"out": first}
