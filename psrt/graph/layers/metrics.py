"""Metrics over many steps."""

from __future__ import annotations

from psrt.graph.builder import Layer
from psrt.graph.program import Var

AUC_BINS = 4096


def auc(input: Var, label: Var, bins: int = AUC_BINS, from_logits: bool = False) -> Var:
    """Area under the ROC curve of all examples since `Scope.reset_state`, a float64 scalar.

    `input` (rows, 1) holds probabilities of class 1, or logits; `label` (rows, 1) is 0 or 1.
    Scores are counted in `bins`, in the state vars `<layer>.positives` and `.negatives`.
    """
    layer = Layer("auc")
    counts = {
        name: layer.var(f"{layer.name}.{name}", (bins,), "int64", "state")
        for name in ("positives", "negatives")
    }
    return layer.op("auc", {"x": input, "label": label, **counts}, from_logits=from_logits)
