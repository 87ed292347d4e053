"""Metrics, float64 scalars: of one batch, or of all examples since `Scope.reset_state`.

The latter count in state vars named after the layer call.
"""

from __future__ import annotations

from typing import NamedTuple

from psrt.graph.builder import Layer, Vars
from psrt.graph.program import Var

AUC_BINS = 4096


def auc(
    input: Var, label: Var, bins: int = AUC_BINS, from_logits: bool = False, curve: str = "ROC"
) -> Var:
    """Area under the curve of all examples since `Scope.reset_state`, a float64 scalar.

    `input` (rows, 1) holds probabilities of class 1, or logits; `label` (rows, 1) is 0.0 or 1.0.
    Scores are counted in `bins`, in the state vars `<layer>.positives` and `.negatives`. Curve "PR"
    is precision over recall, summed in steps (average precision). NaN while one class is missing.
    """
    layer = Layer("auc")
    bins = layer.whole("bins", bins, least=1)
    counts = {
        name: layer.var(f"{layer.name}.{name}", (bins,), "int64", "state")
        for name in ("positives", "negatives")
    }
    inputs: dict[str, Vars] = {"x": input, "label": label, **counts}
    return layer.op("auc", inputs, from_logits=from_logits, curve=curve)


def batch_auc(
    input: Var, label: Var, bins: int = AUC_BINS, from_logits: bool = False, curve: str = "ROC"
) -> Var:
    """Area under the curve of each batch, a float64 scalar; arguments: see `auc`."""
    layer = Layer("batch_auc")
    inputs: dict[str, Vars] = {"x": input, "label": label}
    return layer.op("batch_auc", inputs, bins=bins, from_logits=from_logits, curve=curve)


def sliding_auc(
    input: Var,
    label: Var,
    batches: int,
    bins: int = AUC_BINS,
    from_logits: bool = False,
    curve: str = "ROC",
) -> Var:
    """Area under the curve of the last `batches` batches, a float64 scalar; see `auc`.

    The counts are in the state vars `<layer>.positives` and `.negatives` (batches + 1, bins), whose
    last row has the sums.
    """
    layer = Layer("sliding_auc")
    rows = layer.whole("batches", batches, least=1) + 1
    bins = layer.whole("bins", bins, least=1)
    inputs: dict[str, Vars] = {"x": input, "label": label}
    for name in ("positives", "negatives"):
        inputs[name] = layer.var(f"{layer.name}.{name}", (rows, bins), "int64", "state")
    inputs["place"] = layer.var(f"{layer.name}.place", (1,), "int64", "state")
    return layer.op("sliding_auc", inputs, from_logits=from_logits, curve=curve)


def accuracy(input: Var, label: Var, k: int = 1, running: bool = False) -> Var:
    """Share of examples whose label is among the `k` highest scores, a float64 scalar.

    `input` is (rows, classes), `label` int64 (rows, 1). Of equal scores the lower class ranks
    higher; of one column every label but 0 is wrong. `running` counts all examples since
    `Scope.reset_state` instead of the batch. Over scores of items it is the hit rate at k.
    """
    layer = Layer("accuracy")
    inputs: dict[str, Vars] = {"input": input, "label": label}
    if running:
        inputs["counts"] = layer.var(f"{layer.name}.counts", (2,), "int64", "state")
    return layer.op("accuracy", inputs, k=k)


class PrecisionRecall(NamedTuple):
    """Float64 scalars; NaN without predicted, or without actual, positives."""

    precision: Var
    recall: Var
    f1: Var


def precision_recall(input: Var, label: Var, threshold: float = 0.5) -> PrecisionRecall:
    """Precision, recall and their harmonic mean of all examples since `Scope.reset_state`.

    `input` (rows, 1) holds scores, which predict class 1 above `threshold`; `label` (rows, 1) is
    0.0 or 1.0.
    """
    layer = Layer("precision_recall")
    counts = layer.var(f"{layer.name}.counts", (3,), "int64", "state")
    inputs: dict[str, Vars] = {"x": input, "label": label, "counts": counts}
    made = layer.ops("precision_recall", inputs, threshold=threshold)
    return PrecisionRecall(made["precision"], made["recall"], made["f1"])


def mae(input: Var, label: Var) -> Var:
    """Mean absolute error of all elements since `Scope.reset_state`, a float64 scalar."""
    return _mean_error("mae", input, label, power=1)


def rmse(input: Var, label: Var) -> Var:
    """Root mean squared error of all elements since `Scope.reset_state`, a float64 scalar."""
    return _mean_error("rmse", input, label, power=2)


def _mean_error(kind: str, input: Var, label: Var, power: int) -> Var:
    layer = Layer(kind)
    sums = layer.var(f"{layer.name}.sums", (2,), "float64", "state")
    return layer.op("mean_error", {"input": input, "label": label, "sums": sums}, power=power)
