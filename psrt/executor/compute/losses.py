"""Losses by example, and the reductions that make scalars of them."""

from __future__ import annotations

import numpy as np

from psrt.core.errors import DataError
from psrt.core.types import Array
from psrt.executor.compute.elementwise import softmax_into
from psrt.executor.compute.table import Bound, Step, computes
from psrt.kernels import nn

# --- binary cross-entropy, squares ----------------------------------------------------------------


@computes("sigmoid_cross_entropy_with_logits")
def sigmoid_cross_entropy(op: Bound) -> Step:
    x, label, out = op.one("x"), op.one("label"), op.one("out")
    loss = op.form(nn.sigmoid_cross_entropy)

    def run() -> None:
        result = out.reserve(x.value.shape)
        loss(x.value.reshape(-1), label.value.reshape(-1), result.reshape(-1))

    return run


@computes("sigmoid_cross_entropy_with_logits_grad")
def sigmoid_cross_entropy_grad(op: Bound) -> Step:
    x, label, grad, x_grad = op.one("x"), op.one("label"), op.one("out@GRAD"), op.one("x@GRAD")
    loss_grad = op.form(nn.sigmoid_cross_entropy_grad)

    def run() -> None:
        d = x_grad.reserve(x.value.shape).reshape(-1)
        loss_grad(x.value.reshape(-1), label.value.reshape(-1), grad.value.reshape(-1), d)

    return run


@computes("square_error_cost")
def square_error(op: Bound) -> Step:
    x, label, out = op.one("input"), op.one("label"), op.one("out")

    def run() -> None:
        result = np.subtract(x.value, label.value, out=out.reserve(x.value.shape))
        np.multiply(result, result, out=result)

    return run


@computes("square_error_cost_grad")
def square_error_grad(op: Bound) -> Step:
    x, label, grad = op.one("input"), op.one("label"), op.one("out@GRAD")
    x_grad, label_grad = op.maybe("input@GRAD"), op.maybe("label@GRAD")

    def run() -> None:
        d = 2 * (x.value - label.value) * grad.value
        if x_grad is not None:
            x_grad.share(d)
        if label_grad is not None:
            label_grad.share(-d)

    return run


# --- cross-entropy over classes -------------------------------------------------------------------


def _at_labels(x: Array, label: Array) -> tuple[Array, Array]:
    """Index of each example's class in `x` (rows, classes)."""
    classes = x.shape[1]
    flat = label.reshape(-1)
    if len(flat) and (flat.min() < 0 or flat.max() >= classes):
        bad = flat[(flat < 0) | (flat >= classes)][0]
        raise DataError(f"Label {bad} is not one of the classes 0 to {classes - 1}.")
    return np.arange(len(flat)), flat


@computes("cross_entropy")
def cross_entropy(op: Bound) -> Step:
    x, label, out = op.one("input"), op.one("label"), op.one("out")

    def run() -> None:
        result = out.reserve((len(x.value), 1))
        result[:, 0] = -np.log(_not_zero(x.value[_at_labels(x.value, label.value)]))

    return run


@computes("cross_entropy_grad")
def cross_entropy_grad(op: Bound) -> Step:
    x, label, grad, x_grad = (
        op.one("input"),
        op.one("label"),
        op.one("out@GRAD"),
        op.one("input@GRAD"),
    )

    def run() -> None:
        at = _at_labels(x.value, label.value)
        d = x_grad.reserve(x.value.shape)
        d.fill(0)
        d[at] = -grad.value[:, 0] / _not_zero(x.value[at])

    return run


def _not_zero(probability: Array) -> Array:
    """A probability that was rounded to 0 has a large loss, not an infinite one."""
    floor: Array = np.maximum(probability, np.finfo(probability.dtype).tiny)
    return floor


@computes("softmax_with_cross_entropy")
def softmax_with_cross_entropy(op: Bound) -> Step:
    """−log softmax(x)[k] = log Σ exp(x − max) − (x_k − max), which no probability can round off."""
    x, label = op.one("logits"), op.one("label")
    out, softmax = op.one("out"), op.one("softmax")

    def run() -> None:
        logits = x.value
        at = _at_labels(logits, label.value)
        softmax_into(logits, softmax.reserve(logits.shape))
        shifted = logits - logits.max(axis=1, keepdims=True)
        out.reserve((len(logits), 1))[:, 0] = np.log(np.exp(shifted).sum(axis=1)) - shifted[at]

    return run


@computes("softmax_with_cross_entropy_grad")
def softmax_with_cross_entropy_grad(op: Bound) -> Step:
    softmax, label = op.one("softmax"), op.one("label")
    grad, x_grad = op.one("out@GRAD"), op.one("logits@GRAD")

    def run() -> None:
        d = x_grad.reserve(softmax.value.shape)
        np.copyto(d, softmax.value)
        d[_at_labels(d, label.value)] -= 1
        d *= grad.value

    return run


# --- reductions -----------------------------------------------------------------------------------


@computes("mean")
def mean(op: Bound) -> Step:
    x, out = op.one("x"), op.one("out")
    return lambda: out.reserve(()).fill(x.value.mean())


@computes("mean_grad")
def mean_grad(op: Bound) -> Step:
    x, grad, x_grad = op.one("x"), op.one("out@GRAD"), op.one("x@GRAD")
    return lambda: x_grad.reserve(x.value.shape).fill(grad.value / x.value.size)


@computes("reduce_sum")
def reduce_sum(op: Bound) -> Step:
    x, out, axes, keep = op.one("x"), op.one("out"), op.attrs["axes"], op.attrs["keep_dims"]

    def run() -> None:
        result = x.value.sum(axis=axes, keepdims=keep)
        np.copyto(out.reserve(np.shape(result)), result)

    return run


@computes("reduce_sum_grad")
def reduce_sum_grad(op: Bound) -> Step:
    x, grad, x_grad, axes = op.one("x"), op.one("out@GRAD"), op.one("x@GRAD"), op.attrs["axes"]

    def run() -> None:
        shape = x.value.shape
        kept = tuple(1 if i in axes else size for i, size in enumerate(shape))
        np.copyto(x_grad.reserve(shape), grad.value.reshape(kept))

    return run


@computes("ones_like")
def ones_like(op: Bound) -> Step:
    x, out = op.one("x"), op.one("out")
    return lambda: out.reserve(x.value.shape).fill(1)
