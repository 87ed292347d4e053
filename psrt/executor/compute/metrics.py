"""Metrics over many steps."""

from __future__ import annotations

from psrt.executor.compute.table import Bound, Step, computes
from psrt.kernels import nn


@computes("auc")
def auc(op: Bound) -> Step:
    x, label, out = op.one("x"), op.one("label"), op.one("out")
    positives, negatives = op.one("positives"), op.one("negatives")
    probabilities, sigmoid = op.scratch(), op.form(nn.sigmoid)
    update_, from_logits = op.form(nn.auc_update_), op.attrs["from_logits"]

    def run() -> None:
        scores = x.value.reshape(-1)
        if from_logits:
            scores = probabilities.reserve(scores.shape)
            sigmoid(x.value.reshape(-1), scores)
        update_(positives.value, negatives.value, scores, label.value.reshape(-1))
        out.reserve(()).fill(nn.auc(positives.value, negatives.value))

    return run
