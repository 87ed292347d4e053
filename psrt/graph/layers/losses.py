"""Losses per example."""

from __future__ import annotations

from typing import Literal, overload

from psrt.graph.builder import Layer
from psrt.graph.program import Var

IGNORED = -100
"""Default label of examples without a loss."""


def sigmoid_cross_entropy_with_logits(
    x: Var, label: Var, ignore_index: float | None = None, normalize: bool = False
) -> Var:
    """Binary cross-entropy −label · log σ(x) − (1 − label) · log σ(−x), elementwise.

    `x` and `label` are floats of one shape, labels from 0 to 1. Elements with label `ignore_index`
    have loss 0; `normalize` divides the others by their number in the batch.
    """
    layer = Layer("sigmoid_cross_entropy_with_logits")
    ignored = None if ignore_index is None else layer.number("ignore_index", ignore_index)
    attrs = {"ignore_index": ignored, "normalize": normalize}
    return layer.op("sigmoid_cross_entropy_with_logits", {"x": x, "label": label}, **attrs)


def cross_entropy(
    input: Var, label: Var, soft_label: bool = False, ignore_index: int = IGNORED
) -> Var:
    """Cross-entropy −log input[label]: (rows, classes), int64 label (rows, 1) → (rows, 1).

    `input` holds probabilities. With `soft_label`, label (rows, classes) holds the share of each
    class: −Σ label · log input. Examples with label `ignore_index` have loss 0. Another label that
    is no class raises `DataError` in the step.
    """
    layer = Layer("cross_entropy")
    ignored = layer.whole("ignore_index", ignore_index)
    attrs = {"soft_label": soft_label, "ignore_index": ignored}
    return layer.op("cross_entropy", {"input": input, "label": label}, **attrs)


@overload
def softmax_with_cross_entropy(
    logits: Var,
    label: Var,
    soft_label: bool = ...,
    ignore_index: int = ...,
    return_softmax: Literal[False] = ...,
) -> Var: ...


@overload
def softmax_with_cross_entropy(
    logits: Var,
    label: Var,
    soft_label: bool = ...,
    ignore_index: int = ...,
    *,
    return_softmax: Literal[True],
) -> tuple[Var, Var]: ...


def softmax_with_cross_entropy(
    logits: Var,
    label: Var,
    soft_label: bool = False,
    ignore_index: int = IGNORED,
    return_softmax: bool = False,
) -> Var | tuple[Var, Var]:
    """Softmax and cross-entropy −log softmax(logits)[label] in one op.

    `logits` is (rows, classes), `label` int64 (rows, 1), the loss (rows, 1). `soft_label`,
    `ignore_index` and errors: see `cross_entropy`. `return_softmax` returns (loss, softmax);
    nothing is trained through that softmax.
    """
    layer = Layer("softmax_with_cross_entropy")
    ignored = layer.whole("ignore_index", ignore_index)
    attrs = {"soft_label": soft_label, "ignore_index": ignored}
    made = layer.ops("softmax_with_cross_entropy", {"logits": logits, "label": label}, **attrs)
    return (made["out"], made["softmax"]) if return_softmax else made["out"]


def square_error_cost(input: Var, label: Var) -> Var:
    """Squared error (input − label)², elementwise, of floats of one shape."""
    return Layer("square_error_cost").op("square_error_cost", {"input": input, "label": label})


def huber_loss(input: Var, label: Var, delta: float) -> Var:
    """Huber loss of r = input − label, elementwise.

    r² / 2 for |r| ≤ delta, else delta · (|r| − delta / 2). Huber 1964, "Robust estimation of a
    location parameter".
    """
    layer = Layer("huber_loss")
    return layer.op("huber_loss", {"input": input, "label": label}, delta=delta)


def smooth_l1(x: Var, y: Var, sigma: float = 1.0) -> Var:
    """Smooth L1 loss of r = x − y, summed per example: (rows, …) → (rows, 1).

    σ² r² / 2 where |r| < 1 / σ², else |r| − 1 / (2 σ²). Girshick 2015, "Fast R-CNN", equation 3,
    with the σ of Faster R-CNN.
    """
    return Layer("smooth_l1").op("smooth_l1", {"x": x, "y": y}, sigma=sigma)


def hinge_loss(input: Var, label: Var) -> Var:
    """Hinge loss max(0, 1 − input · (2 label − 1)), elementwise; labels are floats 0 or 1."""
    return Layer("hinge_loss").op("hinge_loss", {"input": input, "label": label})


def log_loss(input: Var, label: Var, epsilon: float = 1e-4) -> Var:
    """Log loss −label · log(input + ε) − (1 − label) · log(1 − input + ε), elementwise."""
    return Layer("log_loss").op("log_loss", {"input": input, "label": label}, epsilon=epsilon)
