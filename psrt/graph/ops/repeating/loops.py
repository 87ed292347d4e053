"""Repetition while a condition holds, and arrays of tensors, which grow from turn to turn.

The elements of an array have one shape, and lie behind each other along a dimension of their own:
elements (rows, …) make an array (rows, length, …), others (…) an array (length, …).
"""

from __future__ import annotations

from psrt.core.types import Shape
from psrt.graph.ops.table import ANY, OWN, ROWS, OpCall, TensorType, Types, define
from psrt.graph.ops.values import need_dtype


@define("while_loop", inputs="x*", outputs="out*", ragged="x", lengths=OWN, each="x")
def while_loop(call: OpCall) -> Types:
    """A turn that is a program of its own, as long as the first var of x is True.

    `x` are the first values of the carried vars, the condition before all others, then what a turn
    reads besides. attrs: body, the text of the turn's program; reads, the names there of all in x;
    carried, the number of carried vars; following, their names after a turn; is_test.
    """
    xs, count = call.many("x"), call.attrs["carried"]
    call.need(0 < count <= len(xs), "a loop carries its condition at least")
    first = xs[0]
    fits = first.dtype == "bool" and first.shape in ((), (1,), (ROWS,)) and not first.ragged
    call.need(fits, f"the condition is {first}, not one bool")
    return {}


@define("empty", inputs="")
def empty(call: OpCall) -> Types:
    """A value that no op has written yet. attrs: shape, of which open sizes are 0; dtype."""
    return {"out": TensorType(call.attrs["shape"], need_dtype(call))}


@define("array_write", inputs="array x i condition?")
def array_write(call: OpCall) -> Types:
    """`array` whose element `i` is x; with a `condition` that is False, `array` as it is."""
    array, x = call.one("array"), call.one("x")
    fits = array.dtype == x.dtype and array.shape == array_shape(x.shape)
    call.need(fits, f"argument x is {x}, argument array {array} has other elements")
    need_index(call)
    return {"out": array}


@define("array_read", inputs="array i")
def array_read(call: OpCall) -> Types:
    """Element `i` of an array."""
    array = _need_array(call)
    need_index(call)
    axis = array_axis(array.shape)
    return {"out": array.reshaped(array.shape[:axis] + array.shape[axis + 1 :])}


@define("array_length", inputs="array")
def array_length(call: OpCall) -> Types:
    """The number of elements, int64 (1,)."""
    _need_array(call)
    return {"out": TensorType((1,), "int64")}


def array_shape(element: Shape) -> Shape:
    """Return the shape of an array of such elements."""
    axis = array_axis(element)
    return (*element[:axis], ANY, *element[axis:])


def array_axis(shape: Shape) -> int:
    """Return the dimension of an array, or of one of these elements, that counts elements."""
    return int(shape[:1] == (ROWS,))


def _need_array(call: OpCall) -> TensorType:
    array = call.one("array")
    axis = array_axis(array.shape)
    fits = array.shape[axis : axis + 1] == (ANY,)
    call.need(fits, f"argument array is {array}, not one of array_write")
    return array


def need_index(call: OpCall) -> None:
    i = call.one("i")
    fits = i.dtype == "int64" and i.shape in ((), (1,))
    call.need(fits, f"argument i is {i}, not one int64 number")
