"""Metrics of one batch, or of all examples since their counts were zeroed.

Counts (`counts`, `sums`, `positives`, `negatives`) are state vars of the scope, changed in place.
"""

from __future__ import annotations

from psrt.graph.ops.losses import need_classes
from psrt.graph.ops.table import ROWS, OpCall, TensorType, Types, define

CURVES = ("ROC", "PR")

_SCALAR = TensorType((), "float64")


def _need_columns(call: OpCall) -> None:
    x, label = call.need_float("x"), call.need_float("label")
    for name, found in (("input", x), ("label", label)):
        fits = found.shape == (ROWS, 1)
        call.need(fits, f"argument {name} must have shape (-1, 1), not {found.shape}")


def _need_scores(call: OpCall) -> None:
    _need_columns(call)
    curve = call.attrs["curve"]
    call.need(curve in CURVES, f"argument curve is {curve!r}, not one of {', '.join(CURVES)}")


def _need_bins(call: OpCall, bins: int) -> None:
    call.need(bins > 0, f"argument bins is {bins}, not 1 or more")


@define("auc", inputs="x label positives negatives", outputs="out positives negatives")
def auc(call: OpCall) -> Types:
    """Area under the curve of all examples since the counts were zeroed.

    `positives` and `negatives` (bins,) count examples by score. attrs: curve, from_logits.
    """
    _need_scores(call)
    positives, negatives = call.one("positives"), call.one("negatives")
    fits = positives == negatives and len(positives.shape) == 1
    call.need(fits, f"the counts are {positives} and {negatives}, not of the same bins")
    _need_bins(call, positives.shape[0])
    return {"out": _SCALAR, "positives": positives, "negatives": negatives}


@define("batch_auc", inputs="x label")
def batch_auc(call: OpCall) -> Types:
    """Area under the curve of the examples of this batch. attrs: bins, curve, from_logits."""
    _need_scores(call)
    _need_bins(call, call.attrs["bins"])
    return {"out": _SCALAR}


@define(
    "sliding_auc",
    inputs="x label positives negatives place",
    outputs="out positives negatives place",
)
def sliding_auc(call: OpCall) -> Types:
    """Area under the curve of the examples of the last batches. attrs: curve, from_logits.

    `positives` and `negatives` (batches + 1, bins) hold the counts of each of the last batches, and
    their sums in the last row; `place` (1,) is the row of the oldest.
    """
    _need_scores(call)
    positives, negatives = call.one("positives"), call.one("negatives")
    fits = positives == negatives and len(positives.shape) == 2 and positives.shape[0] > 1
    call.need(fits, f"the counts are {positives} and {negatives}, not of the same bins")
    counts = {"positives": positives, "negatives": negatives, "place": call.one("place")}
    return {"out": _SCALAR} | counts


@define("accuracy", inputs="input label counts?", outputs="out counts?", ragged="input label")
def accuracy(call: OpCall) -> Types:
    """Share of examples whose label is among the k highest scores. attrs: k.

    `counts` (2,): right and all examples; without it the metric is that of the batch.
    """
    scores, k = need_classes(call, "input"), call.attrs["k"]
    classes = scores.shape[1]
    fits = k >= 1 and (classes == ROWS or k <= classes)
    call.need(fits, f"argument k is {k}, not from 1 to the classes of input {scores}")
    return {"out": _SCALAR} | dict(zip(("counts",), call.many("counts"), strict=False))


@define("precision_recall", inputs="x label counts", outputs="precision recall f1 counts")
def precision_recall(call: OpCall) -> Types:
    """`counts` (3,): true positives, false positives, false negatives. attrs: threshold."""
    _need_columns(call)
    scalars = dict.fromkeys(("precision", "recall", "f1"), _SCALAR)
    return scalars | {"counts": call.one("counts")}


@define("mean_error", inputs="input label sums", outputs="out sums")
def mean_error(call: OpCall) -> Types:
    """(Σ |input − label| ^ power / elements) ^ (1 / power). attrs: power, 1 or 2.

    `sums` (2,) float64: the sum and the number of elements.
    """
    found, label = call.need_float("input"), call.one("label")
    call.need(label == found, f"argument label is {label}, argument input is {found}")
    return {"out": _SCALAR, "sums": call.one("sums")}
