"""Losses per example.

Slots have the names of the layers' arguments, so that messages name what the user wrote.
"""

from __future__ import annotations

from psrt.graph.ops.table import ROWS, OpCall, TensorType, Types, define


def _same_floats(call: OpCall, slot: str) -> Types:
    found, label = call.need_float(slot), call.need_float("label")
    call.need(found == label, f"argument label is {label}, argument {slot} is {found}")
    return {"out": found}


@define("sigmoid_cross_entropy_with_logits", inputs="x label")
def sigmoid_cross_entropy_with_logits(call: OpCall) -> Types:
    """attrs: ignore_index, a label with loss 0, or None; normalize by the number of others."""
    return _same_floats(call, "x")


@define("sigmoid_loss", inputs="x label", outputs="out slope")
def sigmoid_loss(call: OpCall) -> Types:
    """Binary cross-entropy and its derivative by x, for its gradient; made by a pass."""
    found = _same_floats(call, "x")["out"]
    return {"out": found, "slope": found}


@define("square_error_cost", inputs="input label")
@define("hinge_loss", inputs="input label")
def loss_of_floats(call: OpCall) -> Types:
    return _same_floats(call, "input")


@define("huber_loss", inputs="input label")
def huber_loss(call: OpCall) -> Types:
    """attrs: delta, the end of the parabola."""
    _need_positive(call, "delta")
    return _same_floats(call, "input")


@define("smooth_l1", inputs="x y")
def smooth_l1(call: OpCall) -> Types:
    """attrs: sigma; summed over all dimensions but the first: (rows, 1)."""
    _need_positive(call, "sigma")
    x, y = call.need_float("x"), call.one("y")
    call.need(y == x, f"argument y is {y}, argument x is {x}")
    call.need(len(x.shape) > 1, f"argument x must have 2 dimensions or more, not {x}")
    return {"out": x.reshaped((x.shape[0], 1))}


@define("log_loss", inputs="input label", ragged="input label")
def log_loss(call: OpCall) -> Types:
    """attrs: epsilon, added to the probabilities."""
    _need_positive(call, "epsilon")
    return _same_floats(call, "input")


def _need_positive(call: OpCall, name: str) -> None:
    call.need(call.attrs[name] > 0, f"argument {name} is {call.attrs[name]}, not above 0")


def need_classes(call: OpCall, slot: str) -> TensorType:
    """Require (rows, classes) floats and int64 labels (rows, 1); of elements ragged (n,), too."""
    found, label = call.need_float(slot), call.one("label")
    call.need_ndim(slot, 2)
    shapes = ((ROWS, 1), (ROWS,)) if label.ragged else ((ROWS, 1),)
    fits = label.dtype == "int64" and label.shape in shapes and label.ragged == found.ragged
    call.need(fits, f"argument label must be int64 (-1, 1) for {slot} {found}, not {label}")
    return found


def _need_targets(call: OpCall, slot: str) -> TensorType:
    """Require int64 labels, or with soft_label a share of each class (rows, classes)."""
    if not call.attrs["soft_label"]:
        return need_classes(call, slot)
    call.need_ndim(slot, 2)
    _same_floats(call, slot)
    return call.one(slot)


@define("cross_entropy", inputs="input label", ragged="input label")
def cross_entropy(call: OpCall) -> Types:
    """−log of the probability of the right class; input holds probabilities.

    attrs: soft_label; ignore_index, a label whose loss is 0.
    """
    return {"out": _need_targets(call, "input").reshaped((ROWS, 1))}


@define(
    "softmax_with_cross_entropy",
    inputs="logits label",
    outputs="out softmax",
    ragged="logits label",
)
def softmax_with_cross_entropy(call: OpCall) -> Types:
    """Cross-entropy of the softmax of the logits; returns both."""
    logits = _need_targets(call, "logits")
    return {"out": logits.reshaped((ROWS, 1)), "softmax": logits}
