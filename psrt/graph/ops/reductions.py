"""Ops that reduce dimensions: sums, extremes, running sums, norms, the best k.

Dimension 0 of a batch counts examples, of a ragged var elements of all examples. `reduce_*` and
`mean` may reduce it where the var is not ragged, and sums and means where they reduce all
dimensions; every other op keeps it.
"""

from __future__ import annotations

from psrt.core.types import Shape
from psrt.graph.ops.table import ROWS, OpCall, TensorType, Types, define


@define("mean", inputs="x", ragged="x")
def mean(call: OpCall) -> Types:
    """The mean of all elements, a scalar of shape ()."""
    return {"out": TensorType((), call.need_float("x").dtype)}


def reduction(call: OpCall) -> Types:
    """attrs: axes, a sorted tuple of dimensions (all of them: a scalar); keep_dims."""
    x, axes, keep = call.need_float("x"), call.attrs["axes"], call.attrs["keep_dims"]
    fits = all(0 <= axis < len(x.shape) for axis in axes)
    call.need(fits, f"argument dim {axes} is not within {x.shape}")
    mixes = x.ragged and 0 in axes
    call.need(not mixes, f"argument x is {x}, and dim {axes} would mix elements of all examples")
    shape = [1 if i in axes else size for i, size in enumerate(x.shape) if keep or i not in axes]
    return {"out": x.reshaped(tuple(shape))}


def sum_or_mean(call: OpCall) -> Types:
    """attrs: as of `reduction`; all elements of a ragged var are one sum."""
    x, axes = call.need_float("x"), call.attrs["axes"]
    if not (x.ragged and len(axes) == len(x.shape)):
        return reduction(call)
    return {"out": TensorType((1,) * len(axes) if call.attrs["keep_dims"] else (), x.dtype)}


for _type in ("reduce_max", "reduce_min", "reduce_prod"):
    define(_type, inputs="x", ragged="x")(reduction)
for _type in ("reduce_sum", "reduce_mean"):
    define(_type, inputs="x", ragged="x")(sum_or_mean)


def need_inner(call: OpCall, x: TensorType, argument: str, axis: int) -> None:
    """Require that `axis` is a dimension of `x`, not that of the examples."""
    fits = 0 <= axis < len(x.shape)
    call.need(fits, f"argument {argument} {axis} is not a dimension of argument x, {x}")
    mixes = axis == 0 and x.shape[0] == ROWS
    call.need(not mixes, f"argument {argument} 0 counts the examples of argument x, {x}")


@define("cumsum", inputs="x", ragged="x")
def cumsum(call: OpCall) -> Types:
    """attrs: axis; exclusive, which omits the element itself; reverse, from the end."""
    x = call.need_float("x")
    need_inner(call, x, "axis", call.attrs["axis"])
    return {"out": x}


def position(call: OpCall) -> Types:
    """Index of the extreme, the first of several; no gradient. attrs: axis."""
    x, axis = call.one("x"), call.attrs["axis"]
    need_inner(call, x, "axis", axis)
    return {"out": TensorType(x.shape[:axis] + x.shape[axis + 1 :], "int64", x.ragged)}


define("argmax", inputs="x", ragged="x")(position)
define("argmin", inputs="x", ragged="x")(position)


@define("topk", inputs="input", outputs="out indices", ragged="input")
def topk(call: OpCall) -> Types:
    """Largest elements of the last dimension, falling, and their indices. attrs: k."""
    x, k = call.need_float("input"), call.attrs["k"]
    call.need(len(x.shape) > 1, f"argument input must have 2 dimensions or more, not {x}")
    fits = k >= 1 and (x.shape[-1] == ROWS or k <= x.shape[-1])
    call.need(fits, f"argument k {k} does not fit argument input of shape {x.shape}")
    shape: Shape = (*x.shape[:-1], k)
    return {"out": x.reshaped(shape), "indices": TensorType(shape, "int64", x.ragged)}


@define("l2_normalize", inputs="x", outputs="out norm", ragged="x")
def l2_normalize(call: OpCall) -> Types:
    """attrs: axis, epsilon. norm = √(Σ x² + epsilon) along the axis, out = x / norm."""
    x, axis = call.need_float("x"), call.attrs["axis"]
    need_inner(call, x, "axis", axis)
    norm = x.reshaped((*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    return {"out": x, "norm": norm}
