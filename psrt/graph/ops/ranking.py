"""Losses that compare scores: of classes, of pairs, and within the batch."""

from __future__ import annotations

from psrt.graph.ops.losses import need_classes
from psrt.graph.ops.table import ROWS, OpCall, TensorType, Types, define


@define("bpr_loss", inputs="input label", ragged="input label")
def bpr_loss(call: OpCall) -> Types:
    """Mean of −log σ(score of the label − score of another class) over the other classes."""
    scores = need_classes(call, "input")
    call.need(scores.shape[1] > 1, f"argument input {scores} has one class: nothing to compare")
    return {"out": scores.reshaped((ROWS, 1))}


def _need_pair(call: OpCall) -> TensorType:
    left = call.need_float("left")
    for slot in ("right", "label"):
        found = call.one(slot)
        call.need(found == left, f"argument {slot} is {found}, argument left is {left}")
    return left


@define("rank_loss", inputs="label left right")
def rank_loss(call: OpCall) -> Types:
    """log(1 + e^o) − label · o for o = left − right."""
    return {"out": _need_pair(call)}


@define("margin_rank_loss", inputs="label left right")
def margin_rank_loss(call: OpCall) -> Types:
    """max(0, margin − label · (left − right)). attrs: margin."""
    return {"out": _need_pair(call)}


@define("in_batch_softmax_loss", inputs="user item item_probability?", outputs="out softmax")
def in_batch_softmax_loss(call: OpCall) -> Types:
    """−log softmax of a user's scores of the items of the batch, at the item of its own row.

    attrs: temperature, which divides the scores.
    """
    user = call.need_float("user")
    call.need_ndim("user", 2)
    item = call.one("item")
    call.need(item == user, f"argument item is {item}, argument user is {user}")
    for found in call.many("item_probability"):
        fits = found.is_float and found.shape == (ROWS, 1)
        call.need(fits, f"argument item_probability must be floats (-1, 1), not {found}")
    temperature = call.attrs["temperature"]
    call.need(temperature > 0, f"argument temperature is {temperature}, not above 0")
    return {"out": user.reshaped((ROWS, 1)), "softmax": user.reshaped((ROWS, ROWS))}
