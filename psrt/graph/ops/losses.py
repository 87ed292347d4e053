"""Losses by example, and the reductions that make scalars of them.

Slots bear the names of the layers' arguments, so that messages speak of what the user wrote.
"""

from __future__ import annotations

from psrt.graph.ops.table import ROWS, Call, TensorType, Types, define


def _same_floats(call: Call, slot: str) -> Types:
    found, label = call.need_float(slot), call.need_float("label")
    call.need(found == label, f"argument label is {label}, argument {slot} is {found}")
    return {"out": found}


@define("sigmoid_cross_entropy_with_logits", inputs="x label")
def sigmoid_cross_entropy_with_logits(call: Call) -> Types:
    return _same_floats(call, "x")


@define("square_error_cost", inputs="input label")
def square_error_cost(call: Call) -> Types:
    return _same_floats(call, "input")


def _need_classes(call: Call, slot: str) -> TensorType:
    """(rows, classes) floats and int64 labels (rows, 1)."""
    found, label = call.need_float(slot), call.one("label")
    call.need_ndim(slot, 2)
    fits = label.dtype == "int64" and label.shape == (ROWS, 1)
    call.need(fits, f"argument label must be int64 (-1, 1) for {slot} {found}, not {label}")
    return found


@define("cross_entropy", inputs="input label")
def cross_entropy(call: Call) -> Types:
    """−log of the probability of the right class; input holds probabilities."""
    return {"out": _need_classes(call, "input").reshaped((ROWS, 1))}


@define("softmax_with_cross_entropy", inputs="logits label", outputs="out softmax")
def softmax_with_cross_entropy(call: Call) -> Types:
    """The same of the softmax of the logits, computed together."""
    logits = _need_classes(call, "logits")
    return {"out": logits.reshaped((ROWS, 1)), "softmax": logits}


@define("mean", inputs="x")
def mean(call: Call) -> Types:
    """The mean of all elements, a scalar of shape ()."""
    return {"out": call.need_float("x").reshaped(())}


@define("reduce_sum", inputs="x")
def reduce_sum(call: Call) -> Types:
    """attrs: axes, a sorted tuple of dimensions (all of them: a scalar); keep_dims."""
    x, axes, keep = call.need_float("x"), call.attrs["axes"], call.attrs["keep_dims"]
    fits = all(0 <= axis < len(x.shape) for axis in axes)
    call.need(fits, f"argument dim {axes} is not within {x.shape}")
    shape = [1 if i in axes else size for i, size in enumerate(x.shape) if keep or i not in axes]
    return {"out": x.reshaped(tuple(shape))}


@define("ones_like", inputs="x")
def ones_like(call: Call) -> Types:
    """Where backward starts: d loss / d loss."""
    return {"out": call.one("x")}
