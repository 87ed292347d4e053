"""Comparisons, and logic of their results: bools without a gradient."""

from __future__ import annotations

from psrt.graph.ops.elementwise import aligned, broadcast, need_common_rows
from psrt.graph.ops.table import OpCall, TensorType, Types, define

COMPARISONS = ("less_than", "less_equal", "greater_than", "greater_equal", "equal", "not_equal")
LOGICAL = ("logical_and", "logical_or", "logical_xor")


def compared(call: OpCall) -> Types:
    """attrs: axis, as of elementwise arithmetic."""
    x, y = call.one("x"), call.one("y")
    call.need(x.dtype == y.dtype, f"argument y is {y}, argument x is {x}")
    is_ragged = need_common_rows(call, x, y)
    shape = broadcast(x.shape, aligned(y.shape, len(x.shape), call.attrs["axis"]))
    return {"out": TensorType(shape, "bool", is_ragged)}


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


def _need_bools(call: OpCall, slot: str) -> TensorType:
    found = call.one(slot)
    call.need(found.dtype == "bool", f"argument {slot} must hold bools, not {found}")
    return found
