"""Arrays whose elements differ in rows: a ragged var with a list of rows for each element."""

from __future__ import annotations

from psrt.graph.ops.repeating.loops import need_index
from psrt.graph.ops.table import OWN, ROWS, OpCall, TensorType, Types, define
from psrt.graph.ops.values import need_dtype


@define("empty_lists", inputs="", lengths=OWN)
def empty_lists(call: OpCall) -> Types:
    """An array without elements. attrs: shape, that of a row of its elements; dtype."""
    shape = (ROWS, *call.attrs["shape"])
    return {"out": TensorType(shape, need_dtype(call), ragged=True)}


@define("list_write", inputs="array x i condition?", ragged="array x", lengths=OWN)
def list_write(call: OpCall) -> Types:
    """`array` with the rows of x as element `i`; with a `condition` that is False, as it is."""
    array, x = _need_lists(call), call.one("x")
    fits = array.dtype == x.dtype and array.shape == x.shape
    call.need(fits, f"argument x is {x}, argument array {array} has other rows")
    need_index(call)
    return {"out": array}


@define("list_read", inputs="array i", ragged="array", lengths=OWN)
def list_read(call: OpCall) -> Types:
    """The rows of element `i`: (rows, …)."""
    array = _need_lists(call)
    need_index(call)
    return {"out": TensorType(array.shape, array.dtype)}


@define("list_count", inputs="array", ragged="array")
def list_count(call: OpCall) -> Types:
    """The number of elements, int64 (1,)."""
    _need_lists(call)
    return {"out": TensorType((1,), "int64")}


def _need_lists(call: OpCall) -> TensorType:
    array = call.one("array")
    call.need(array.ragged, f"argument array is {array}, not one of list_write")
    return array
