"""Metrics of one batch or over many steps."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from psrt.core.types import I64, Array
from psrt.executor.compute.losses import class_labels
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.kernels.ops import metrics, nn

# --- areas under curves ---------------------------------------------------------------------------

_AREAS: dict[str, Callable[[I64, I64], float]] = {"ROC": nn.auc, "PR": metrics.average_precision}


def _count_scores(op: Bound) -> Callable[[I64, I64], None]:
    """Returns `count(positives, negatives)`, which adds the batch to histograms of scores."""
    x, label, probabilities = op.one("x"), op.one("label"), op.scratch()
    sigmoid, update_, from_logits = (
        op.kernel(nn.sigmoid),
        op.kernel(nn.auc_update_),
        op.attrs["from_logits"],
    )

    def count(positives: I64, negatives: I64) -> None:
        scores = x.value.reshape(-1)
        if from_logits:
            logits, scores = scores, probabilities.reserve(scores.shape)
            sigmoid(logits, scores)
        update_(positives, negatives, scores, label.value.reshape(-1))

    return count


@computes("auc")
def auc(op: Bound) -> Step:
    positives, negatives, out = op.one("positives"), op.one("negatives"), op.one("out")
    count, area = _count_scores(op), _AREAS[op.attrs["curve"]]

    def run() -> None:
        count(positives.value, negatives.value)
        out.reserve(()).fill(area(positives.value, negatives.value))

    return run


@computes("batch_auc")
def batch_auc(op: Bound) -> Step:
    count, area, out = _count_scores(op), _AREAS[op.attrs["curve"]], op.one("out")
    counts: I64 = np.zeros((2, op.attrs["bins"]), np.int64)

    def run() -> None:
        counts.fill(0)
        count(counts[0], counts[1])
        out.reserve(()).fill(area(counts[0], counts[1]))

    return run


@computes("sliding_auc")
def sliding_auc(op: Bound) -> Step:
    windows, place = (op.one("positives"), op.one("negatives")), op.one("place")
    count, area, out = _count_scores(op), _AREAS[op.attrs["curve"]], op.one("out")
    batch: I64 = np.zeros((2, op.shapes("positives")[0][1]), np.int64)

    def run() -> None:
        batch.fill(0)
        count(batch[0], batch[1])
        oldest = int(place.value[0])
        for counts, window in zip(batch, (cell.value for cell in windows), strict=True):
            window[-1] += counts - window[oldest]
            window[oldest] = counts
        place.value[0] = (oldest + 1) % (len(windows[0].value) - 1)
        out.reserve(()).fill(area(windows[0].value[-1], windows[1].value[-1]))

    return run


# --- right and wrong ------------------------------------------------------------------------------


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


@computes("accuracy")
def accuracy(op: Bound) -> Step:
    x, label, out, counts = op.one("input"), op.one("label"), op.one("out"), op.maybe("counts")
    count_in_top, k = op.kernel(metrics.count_in_top), op.attrs["k"]

    def run() -> None:
        scores = np.ascontiguousarray(x.value)
        examples = len(scores)
        if scores.shape[1] == 1:  # of one column, class 0, every other label is wrong
            right = examples - int(np.count_nonzero(label.value))
        else:
            right = count_in_top(scores, class_labels(label.value, scores.shape[1]), k)
        if counts is not None:
            counts.value += (right, examples)
            right, examples = counts.value.tolist()
        out.reserve(()).fill(_ratio(right, examples))

    return run


@computes("precision_recall")
def precision_recall(op: Bound) -> Step:
    x, label, counts = op.one("x"), op.one("label"), op.one("counts")
    outs = [op.one(slot) for slot in ("precision", "recall", "f1")]
    threshold = op.attrs["threshold"]

    def run() -> None:
        predicted, positive = x.value > threshold, label.value > 0.5
        found = predicted & positive, predicted & ~positive, ~predicted & positive
        counts.value += [np.count_nonzero(each) for each in found]
        right, false_alarms, missed = counts.value.tolist()
        values = (
            _ratio(right, right + false_alarms),
            _ratio(right, right + missed),
            _ratio(2 * right, 2 * right + false_alarms + missed),
        )
        for out, value in zip(outs, values, strict=True):
            out.reserve(()).fill(value)

    return run


@computes("mean_error")
def mean_error(op: Bound) -> Step:
    x, label, sums, out = op.one("input"), op.one("label"), op.one("sums"), op.one("out")
    power, scratch = op.attrs["power"], op.scratch()

    def error_of(difference: Array) -> float:
        if power == 2:
            return float(np.vdot(difference, difference))
        return float(np.abs(difference, out=difference).sum(dtype=np.float64))

    def run() -> None:
        difference = np.subtract(x.value, label.value, out=scratch.reserve(x.value.shape))
        sums.value += (error_of(difference), difference.size)
        total, count = sums.value.tolist()
        out.reserve(()).fill(_ratio(total, count) ** (1 / power))

    return run
