"""Elementwise arithmetic and comparisons with broadcasting, and sums of many vars."""

from __future__ import annotations

from psrt.core.types import Shape
from psrt.graph.ops.table import ANY, ROWS, Mismatch, OpCall, TensorType, Types, define


def aligned(y: Shape, ndim: int, axis: int) -> Shape:
    """`y` with ones appended so that its first dimension is at `axis` of `ndim` ones.

    `axis` -1 aligns the last dimensions, as numpy does.
    """
    if axis < 0:
        return y
    return y + (1,) * (ndim - axis - len(y))


def broadcast(x: Shape, y: Shape) -> Shape:
    """Broadcast by numpy's rule; ROWS fits ROWS and 1, ANY fits every size."""
    ndim = max(len(x), len(y))
    pairs = zip((1,) * (ndim - len(x)) + x, (1,) * (ndim - len(y)) + y, strict=True)
    out = []
    for a, b in pairs:
        if a != b and 1 not in (a, b) and ANY not in (a, b):
            raise Mismatch(f"argument y of shape {y} does not broadcast to argument x of shape {x}")
        out.append(b if a == 1 or (a == ANY and b != 1) else a)
    return tuple(out)


def need_common_rows(call: OpCall, x: TensorType, y: TensorType) -> bool:
    """Refuse elements of ragged vars with examples; returns whether one is ragged."""
    apart = x.ragged != y.ragged and ROWS in (y if x.ragged else x).shape
    call.need(not apart, f"argument y is {y} and argument x is {x}: elements are not examples")
    return x.ragged or y.ragged


def arithmetic(call: OpCall) -> Types:
    """attrs: axis, the dimension of x where those of y begin (-1: aligned at the end)."""
    x, y = call.one("x"), call.one("y")
    call.need(x.dtype == y.dtype, f"argument y is {y}, argument x is {x}")
    is_ragged = need_common_rows(call, x, y)
    shape = broadcast(x.shape, aligned(y.shape, len(x.shape), call.attrs["axis"]))
    fits = shape[:1] == (ROWS,) or not is_ragged
    call.need(fits, f"argument y is {y}, argument x is {x}: elements would not come first")
    return {"out": TensorType(shape, x.dtype, is_ragged)}


def float_arithmetic(call: OpCall) -> Types:
    call.need_float("x")
    return arithmetic(call)


define("elementwise_add", inputs="x y", ragged="x y")(arithmetic)
define("elementwise_sub", inputs="x y", ragged="x y")(arithmetic)
define("elementwise_mul", inputs="x y", ragged="x y")(arithmetic)
define("elementwise_div", inputs="x y", ragged="x y")(float_arithmetic)
define("elementwise_max", inputs="x y", ragged="x y")(arithmetic)
define("elementwise_min", inputs="x y", ragged="x y")(arithmetic)
define("elementwise_mod", inputs="x y", ragged="x y")(arithmetic)
define("elementwise_pow", inputs="x y", ragged="x y")(float_arithmetic)


@define("sum", inputs="x*", ragged="x")
def sum_all(call: OpCall) -> Types:
    """The elementwise sum of vars of one type."""
    first, *others = call.many("x")
    for x in others:
        call.need(x == first, f"argument x has parts of different types: {first} and {x}")
    return {"out": first}


# --- comparisons: bools without a gradient --------------------------------------------------------

COMPARISONS = ("less_than", "less_equal", "greater_than", "greater_equal", "equal", "not_equal")
LOGICAL = ("logical_and", "logical_or", "logical_xor")


def compared(call: OpCall) -> Types:
    """attrs: axis, as of elementwise arithmetic."""
    found = arithmetic(call)["out"]
    return {"out": TensorType(found.shape, "bool", found.ragged)}


def combined(call: OpCall) -> Types:
    """attrs: axis, as of elementwise arithmetic."""
    for slot in ("x", "y"):
        _need_bools(call, slot)
    return compared(call)


for _type in COMPARISONS:
    define(_type, inputs="x y", ragged="x y")(compared)
for _type in LOGICAL:
    define(_type, inputs="x y", ragged="x y")(combined)


@define("logical_not", inputs="x", ragged="x")
def logical_not(call: OpCall) -> Types:
    """True where x is False."""
    return {"out": _need_bools(call, "x")}


@define("where", inputs="condition x y", ragged="condition x y")
def where(call: OpCall) -> Types:
    """x where condition, else y, of one type; condition is broadcast to them."""
    condition, x, y = _need_bools(call, "condition"), call.one("x"), call.one("y")
    call.need(x == y, f"argument y is {y}, argument x is {x}")
    need_common_rows(call, x, condition)
    fits = broadcast(x.shape, condition.shape) == x.shape
    call.need(fits, f"argument condition is {condition}, which does not fit argument x, {x}")
    return {"out": x}


def _need_bools(call: OpCall, slot: str) -> TensorType:
    found = call.one(slot)
    call.need(found.dtype == "bool", f"argument {slot} must hold bools, not {found}")
    return found
