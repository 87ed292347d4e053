"""Losses that compare scores: of classes, of pairs, and within the batch."""

from __future__ import annotations

from psrt.graph.builder import Layer, Vars
from psrt.graph.program import Var


def bpr_loss(input: Var, label: Var) -> Var:
    """Mean of −log σ(x_label − x_j) over the other classes j: (rows, classes) → (rows, 1).

    `label` is int64 (rows, 1). Bayesian personalised ranking (Rendle et al. 2009) with all other
    items as negatives, as in session-based recommendation (Hidasi et al. 2016).
    """
    return Layer("bpr_loss").op("bpr_loss", {"input": input, "label": label})


def rank_loss(label: Var, left: Var, right: Var) -> Var:
    """RankNet loss log(1 + e^o) − label · o of o = left − right, elementwise.

    `label` is 1 where left ranks above right, 0 below, 0.5 for a tie; all three are floats of one
    shape (Burges et al. 2005).
    """
    return Layer("rank_loss").op("rank_loss", {"label": label, "left": left, "right": right})


def margin_rank_loss(label: Var, left: Var, right: Var, margin: float = 0.1) -> Var:
    """Margin loss max(0, margin − label · (left − right)), elementwise.

    `label` is 1 where left ranks above right, −1 below; all three are floats of one shape.
    """
    layer = Layer("margin_rank_loss")
    inputs: dict[str, Vars] = {"label": label, "left": left, "right": right}
    return layer.op("margin_rank_loss", inputs, margin=margin)


def in_batch_softmax_loss(
    user: Var, item: Var, temperature: float = 1.0, item_probability: Var | None = None
) -> Var:
    """Softmax loss over the items of the batch: (rows, d), (rows, d) → (rows, 1).

    A user's score of an item is user · item / temperature; the item of row i is the right one for
    user i and wrong for the others. Popular items occur in more batches: `item_probability` (rows,
    1), how often an item is drawn, subtracts log P(item) from its scores (Yi et al. 2019,
    "Sampling-bias-corrected neural modeling for large corpus item recommendations"). Local replicas
    and trainers each use the items of their own part of the batch.
    """
    layer = Layer("in_batch_softmax_loss")
    given = [] if item_probability is None else [item_probability]
    inputs: dict[str, Vars] = {"user": user, "item": item, "item_probability": given}
    return layer.op("in_batch_softmax_loss", inputs, temperature=temperature)
