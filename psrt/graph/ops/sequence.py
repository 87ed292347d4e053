"""Elements of each example: pooled, weighted, moved, padded.

A ragged var of shape (n, …) holds the n elements of all examples. Ops that make new lengths (OWN)
set the offsets of their output; all others give it those of an input. Slots have the names of the
layers' arguments.
"""

from __future__ import annotations

from psrt.core.types import Shape
from psrt.graph.ops.table import ANY, OWN, ROWS, OpCall, TensorType, Types, define

POOLS = ("sum", "average", "sqrt", "max", "first", "last")


def need_pool(call: OpCall) -> None:
    """Require attrs: pool, one of POOLS."""
    pool = call.attrs["pool"]
    call.need(pool in POOLS, f"the pool {pool!r} is not one of {', '.join(POOLS)}")


def argmax_of(call: OpCall, shape: Shape) -> Types:
    """Output of a maximum for its gradient: the row each number came from."""
    return {"argmax": TensorType(shape, "int32")} if call.attrs["pool"] == "max" else {}


def need_ragged(call: OpCall, slot: str, what: str = "input") -> TensorType:
    found = call.one(slot)
    call.need(found.ragged, f"argument {what} must be ragged, not {found}")
    return found


def _is_column(x: TensorType) -> bool:
    """Return whether each element or example has one number: (n,) or (n, 1)."""
    return x.shape in ((ROWS,), (ROWS, 1))


@define("sequence_pool", inputs="x", outputs="out argmax?", ragged="x")
def sequence_pool(call: OpCall) -> Types:
    """Pool the elements of each example: ragged (n, width) → (rows, width); none gives 0."""
    x = call.one("x")
    need_pool(call)
    fits = x.is_float and x.ragged and len(x.shape) in (1, 2)
    call.need(fits, f"argument input must be ragged rows of floats, not {x}")
    shape = (ROWS, *x.shape[1:]) if len(x.shape) == 2 else (ROWS, 1)
    return {"out": TensorType(shape, x.dtype)} | argmax_of(call, shape)


@define("sequence_softmax", inputs="input", ragged="input")
def sequence_softmax(call: OpCall) -> Types:
    """Softmax over the elements of each example: ragged (n,) or (n, 1) floats."""
    x = need_ragged(call, "input")
    fits = x.is_float and _is_column(x)
    call.need(fits, f"argument input must hold one float an element, not {x}")
    return {"out": x}


@define("sequence_expand", inputs="x y", ragged="y", lengths="y")
def sequence_expand(call: OpCall) -> Types:
    """Row i of x for every element of example i of y: (rows, …) → ragged (n, …)."""
    x, _ = call.one("x"), need_ragged(call, "y", "y")
    call.need(x.shape[:1] == (ROWS,), f"argument x must have a row for each example, not {x}")
    return {"out": TensorType(x.shape, x.dtype, ragged=True)}


@define("sequence_concat", inputs="input*", ragged="input", lengths=OWN)
def sequence_concat(call: OpCall) -> Types:
    """The elements of each example of the first var, then those of the second, …"""
    first, *others = call.many("input")
    for x in (first, *others):
        call.need(x.ragged, f"argument input must be ragged, not {x}")
        call.need(x == first, f"argument input has parts of different types: {first} and {x}")
    return {"out": first}


@define("sequence_reverse", inputs="x", ragged="x")
def sequence_reverse(call: OpCall) -> Types:
    """Elements of each example, reversed."""
    return {"out": need_ragged(call, "x", "x")}


@define("sequence_slice", inputs="input offset length", ragged="input", lengths=OWN)
def sequence_slice(call: OpCall) -> Types:
    """`length` elements of each example from its element `offset` on; both int64 (rows, 1)."""
    x = need_ragged(call, "input")
    for slot in ("offset", "length"):
        _need_counts(call, slot)
    return {"out": x}


@define("sequence_pad", inputs="x", outputs="out length", ragged="x")
def sequence_pad(call: OpCall) -> Types:
    """ragged (n, …) → (rows, maxlen, …), and the int64 (rows, 1) elements that are not padding.

    attrs: maxlen, behind which elements are cut, ANY for the longest example; pad_value.
    """
    x, maxlen = need_ragged(call, "x", "x"), call.attrs["maxlen"]
    fits = maxlen > 0 or maxlen == ANY
    call.need(fits, f"argument maxlen is {maxlen}, an example has one place or more")
    value = call.attrs["pad_value"]
    fits = x.is_float or float(value).is_integer()
    call.need(fits, f"argument pad_value {value} does not fit argument x, {x}")
    out = TensorType((ROWS, maxlen, *x.shape[1:]), x.dtype)
    return {"out": out, "length": TensorType((ROWS, 1), "int64")}


@define("sequence_unpad", inputs="x length", lengths=OWN)
def sequence_unpad(call: OpCall) -> Types:
    """(rows, maxlen, …) → ragged (n, …): the first `length` elements of each example."""
    x = call.one("x")
    fits = len(x.shape) > 1 and x.shape[0] == ROWS
    call.need(fits, f"argument x must be (batch, maxlen, …), not {x}")
    _need_counts(call, "length")
    return {"out": TensorType((ROWS, *x.shape[2:]), x.dtype, ragged=True)}


@define("sequence_mask", inputs="x")
def sequence_mask(call: OpCall) -> Types:
    """Lengths int64 (rows, 1) → (rows, maxlen): 1 at elements of the example, else 0.

    attrs: maxlen, ANY for the greatest length; dtype, float32 or int64.
    """
    _need_counts(call, "x")
    maxlen, dtype = call.attrs["maxlen"], call.attrs["dtype"]
    fits = maxlen > 0 or maxlen == ANY
    call.need(fits, f"argument maxlen is {maxlen}, a mask has one column or more")
    call.need(dtype in ("float32", "int64"), f"argument dtype is {dtype!r}, not float32 or int64")
    return {"out": TensorType((ROWS, maxlen), dtype)}


@define("sequence_rows", inputs="x", ragged="x")
def sequence_rows(call: OpCall) -> Types:
    """ragged (n, …) → (rows, …) where every example has one element; other batches are refused."""
    x = need_ragged(call, "x", "x")
    shape = x.shape if len(x.shape) > 1 else (ROWS, 1)
    return {"out": TensorType(shape, x.dtype)}


@define("sequence_context", inputs="input", ragged="input")
def sequence_context(call: OpCall) -> Types:
    """The neighbours of each element within its example, joined.

    ragged (n, width) → (n, length · width), ragged (n,) → (n, length). attrs: start, the place of
    the first neighbour, 0 = the element itself; length; pad_value, in place of elements outside.
    """
    x, length, value = need_ragged(call, "input"), call.attrs["length"], call.attrs["pad_value"]
    fits = len(x.shape) in (1, 2) and ROWS not in x.shape[1:]
    call.need(fits, f"argument input must be one row an element, not {x}")
    call.need(length >= 1, f"the length {length} leaves no neighbours")
    fits = x.is_float or float(value).is_integer()
    call.need(fits, f"argument pad_value {value} does not fit argument input, {x}")
    width = x.shape[1] if len(x.shape) == 2 else 1
    return {"out": x.reshaped((ROWS, length * width))}


@define("sequence_reshape", inputs="input", ragged="input", lengths=OWN)
def sequence_reshape(call: OpCall) -> Types:
    """Each example's numbers in rows of another width: ragged (n, width) → (m, width). attrs:
    width. An example whose numbers do not fill its rows is refused."""
    x, width = need_ragged(call, "input"), call.attrs["width"]
    call.need(len(x.shape) == 2 and width >= 1, f"argument new_dim {width} does not fit {x}")
    return {"out": x.reshaped((ROWS, width))}


@define("sequence_regroup", inputs="x y?", ragged="x y", lengths=OWN)
def sequence_regroup(call: OpCall) -> Types:
    """The rows of x, (n, …) or ragged (n, …), as lists of other lengths: ragged (n, …).

    These are the lengths of y, or begin where the numbers of y have it, int64 that are not ragged.
    attrs: offsets, where lists begin without y.
    """
    x, offsets = call.one("x"), call.attrs["offsets"]
    call.need(len(x.shape) > 0, f"argument x is {x}, which has no rows")
    for y in call.many("y"):
        fits = y.ragged or (y.dtype == "int64" and len(y.shape) == 1)
        call.need(fits, f"argument y is {y}, neither lists nor int64 offsets (lists + 1,)")
    call.need(bool(offsets) != bool(call.many("y")), "it takes y or offsets, and not both")
    return {"out": TensorType((ROWS, *x.shape[1:]), x.dtype, ragged=True)}


@define("sequence_nest", inputs="input lengths", ragged="input lengths", lengths=OWN)
def sequence_nest(call: OpCall) -> Types:
    """Rows (n, …) as ragged (n, …), a list for each of `lengths`, int64 (m,) or (m, 1).

    Where both are ragged, `lengths` has those of the shorter lists of each list of `input`.
    """
    x = call.one("input")
    call.need(x.shape[:1] == (ROWS,), f"argument input is {x}, which has no rows")
    _need_counts(call, "lengths")
    return {"out": TensorType(x.shape, x.dtype, ragged=True)}


@define("sequence_lengths", inputs="x", ragged="x", lengths=OWN)
def sequence_lengths(call: OpCall) -> Types:
    """The number of elements of each list: ragged (n, …) → int64 (rows,)."""
    need_ragged(call, "x", "x")
    return {"out": TensorType((ROWS,), "int64")}


@define("sequence_repeat", inputs="x y", ragged="x y", lengths=OWN)
def sequence_repeat(call: OpCall) -> Types:
    """List i of x for every element of list i of y: ragged (n, …) → (m, …)."""
    x, _ = need_ragged(call, "x", "x"), need_ragged(call, "y", "y")
    return {"out": x}


def _need_counts(call: OpCall, slot: str) -> None:
    found = call.one(slot)
    fits = found.dtype == "int64" and _is_column(found)
    call.need(fits, f"argument {slot} must be int64 (-1, 1), not {found}")
