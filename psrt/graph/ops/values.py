"""Ops that make values of a kind: other dtypes, constants, one-hot rows, rows by index."""

from __future__ import annotations

import math

from psrt.graph.ops.table import ROWS, OpCall, TensorType, Types, define

DTYPES = ("float32", "float64", "int64", "bool")


def need_dtype(call: OpCall) -> str:
    dtype: str = call.attrs["dtype"]
    call.need(dtype in DTYPES, f"argument dtype is {dtype!r}, psrt has {', '.join(DTYPES)}")
    return dtype


@define("cast", inputs="x", ragged="x")
def cast(call: OpCall) -> Types:
    """attrs: dtype. Floats lose their fraction when they become integers."""
    x = call.one("x")
    return {"out": TensorType(x.shape, need_dtype(call), x.ragged)}


@define("assign", inputs="x", ragged="x")
@define("zeros_like", inputs="x", ragged="x")
@define("ones_like", inputs="x", ragged="x")
@define("loss_gradient", inputs="x")
def like_x(call: OpCall) -> Types:
    """A copy, zeros, ones, or d loss / d loss, where backward starts: in a replica its share."""
    return {"out": call.one("x")}


PRINTED = ("name", "message", "lod", "place", "shape", "layout", "dtype")


@define("print_value", inputs="x", ragged="x")
def print_value(call: OpCall) -> Types:
    """x, which is printed on standard output, and its gradient.

    attrs: title, "" for the name of x; message; parts, which lines of PRINTED are shown; summarize,
    the number of elements, -1 for all; first_n, how often, -1 for always; phase, forward, backward
    or both.
    """
    attrs = call.attrs
    strangers = [part for part in attrs["parts"] if part not in PRINTED]
    call.need(not strangers, f"argument parts has {strangers}, psrt prints {', '.join(PRINTED)}")
    phases = ("forward", "backward", "both")
    call.need(
        attrs["phase"] in phases, f"argument phase is {attrs['phase']!r}, not one of {phases}"
    )
    return {"out": call.one("x")}


@define("fill_constant", inputs="")
def fill_constant(call: OpCall) -> Types:
    """attrs: shape, which has no rows; dtype; value."""
    shape = call.attrs["shape"]
    call.need(all(size >= 1 for size in shape), f"argument shape {shape} has an unknown dimension")
    return {"out": TensorType(shape, _dtype_of_value(call))}


@define("constant", inputs="")
def constant(call: OpCall) -> Types:
    """attrs: shape, which has no rows; dtype; values, as many numbers, the last index fastest."""
    shape, values = call.attrs["shape"], call.attrs["values"]
    fits = all(size >= 0 for size in shape) and math.prod(shape) == len(values)
    call.need(fits, f"argument shape {shape} does not fit {len(values)} values")
    return {"out": TensorType(shape, need_dtype(call))}


@define("fill_constant_batch_size_like", inputs="input", ragged="input")
def fill_constant_batch_size_like(call: OpCall) -> Types:
    """attrs: shape, whose first size is ROWS, as many as input has; dtype; value."""
    x, shape = call.one("input"), call.attrs["shape"]
    fits = shape[:1] == (ROWS,) and all(size >= 1 for size in shape[1:])
    call.need(fits, f"argument shape {shape} is not one of rows of a known size")
    call.need(x.shape[:1] == (ROWS,), f"argument input is {x}, which has no rows")
    return {"out": TensorType(shape, _dtype_of_value(call), x.ragged)}


def _dtype_of_value(call: OpCall) -> str:
    """Return the dtype, checked to fit the value."""
    dtype, value = need_dtype(call), call.attrs["value"]
    fits = dtype in ("float32", "float64") or float(value).is_integer()
    call.need(fits, f"argument value {value} does not fit dtype {dtype}")
    return dtype


@define("one_hot", inputs="input", ragged="input")
def one_hot(call: OpCall) -> Types:
    """1 where the index in the last dimension equals the id, else 0; no gradient. attrs: depth."""
    ids, depth = call.one("input"), call.attrs["depth"]
    call.need(ids.dtype == "int64", f"argument input must hold int64 ids, not {ids}")
    call.need(depth >= 1, f"argument depth is {depth}, there is one id or more")
    kept = ids.shape[:-1] if len(ids.shape) > 1 and ids.shape[-1] == 1 else ids.shape
    return {"out": TensorType((*kept, depth), "float32", ids.ragged)}


@define("gather", inputs="input index", ragged="index")
def gather(call: OpCall) -> Types:
    """out[i] = input[index[i]]; index (…) or (…, 1) int64, input has no rows of examples."""
    x, index = call.need_float("input"), call.one("index")
    fits = len(x.shape) > 0 and ROWS not in x.shape
    call.need(fits, f"argument input is {x}, which is not one value for the whole batch")
    call.need(index.dtype == "int64", f"argument index must hold int64 positions, not {index}")
    kept = index.shape[:-1] if len(index.shape) > 1 and index.shape[-1] == 1 else index.shape
    return {"out": TensorType(kept + x.shape[1:], x.dtype, index.ragged)}


@define("gather_nd", inputs="input index")
def gather_nd(call: OpCall) -> Types:
    """out[i] = input[index[i]], by all positions in the last dimension of index, int64 (…, k)."""
    x, index = call.need_float("input"), call.one("index")
    count = index.shape[-1] if index.shape else 0
    fits = index.dtype == "int64" and 1 <= count <= len(x.shape)
    call.need(fits, f"argument index is {index}, not int64 positions in argument input, {x}")
    fits = ROWS not in x.shape or index.shape[:1] == (ROWS,) != (count,)
    call.need(fits, f"argument index is {index}, but argument input, {x}, has rows of examples")
    return {"out": TensorType(index.shape[:-1] + x.shape[count:], x.dtype)}


@define("is_empty", inputs="x", ragged="x")
def is_empty(call: OpCall) -> Types:
    """True if x has no elements in this batch: bool (1,)."""
    return {"out": TensorType((1,), "bool")}


@define("shape_of", inputs="input", ragged="input")
def shape_of(call: OpCall) -> Types:
    """The sizes of input in this batch, int64 (dimensions,)."""
    return {"out": TensorType((len(call.one("input").shape),), "int64")}


@define("set_state", inputs="x state", outputs="state")
def set_state(call: OpCall) -> Types:
    """Copy x, of as many numbers, into a state var, whose later readers read them."""
    x, state = call.one("x"), call.one("state")
    fits = x.dtype == state.dtype and math.prod(x.shape) == math.prod(state.shape)
    call.need(fits, f"argument x is {x}, the var it is assigned to is {state}")
    return {"state": state}
