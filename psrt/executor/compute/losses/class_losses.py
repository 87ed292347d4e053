"""Cross-entropy over classes; kernels compute arrays of class width in place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from psrt.core.errors import DataError
from psrt.core.types import I64, Array
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.kernels.ops import losses


def class_labels(label: Array, classes: int, ignored: int | None = None) -> I64:
    """Labels as (n,); raises `DataError` unless each is a class or `ignored`."""
    flat = label.reshape(-1)
    wrong = (flat < 0) | (flat >= classes)
    if ignored is not None:
        wrong &= flat != ignored
    if wrong.any():
        bad = flat[wrong][0]
        raise DataError(f"Label {bad} is not one of the classes 0 to {classes - 1}.")
    return flat


def _at(labels: I64, ignored: int) -> tuple[I64, I64]:
    """Index of each example's class in (n, classes); class 0 for an ignored label."""
    return np.arange(len(labels)), np.where(labels == ignored, 0, labels)


def _not_zero(probability: Array) -> Array:
    """Probabilities of at least the smallest normal number, so that no loss is infinite."""
    floor: Array = np.maximum(probability, np.finfo(probability.dtype).tiny)
    return floor


@computes("cross_entropy")
def cross_entropy(op: Bound) -> Step:
    if op.attrs["soft_label"]:
        return _soft_cross_entropy(op)
    x, label, out = op.one("input"), op.one("label"), op.one("out")
    ignored = op.attrs["ignore_index"]

    def run() -> None:
        labels = class_labels(label.value, x.value.shape[1], ignored)
        result = out.reserve((len(labels), 1))[:, 0]
        np.log(_not_zero(x.value[_at(labels, ignored)]), out=result)
        result *= -1
        result[labels == ignored] = 0

    return run


@computes("cross_entropy_grad")
def cross_entropy_grad(op: Bound) -> Step:
    if op.attrs["soft_label"]:
        return _soft_cross_entropy_grad(op)
    x, label, ignored = op.one("input"), op.one("label"), op.attrs["ignore_index"]
    grad, x_grad = op.one("out@GRAD"), op.one("input@GRAD")

    def run() -> None:
        labels = class_labels(label.value, x.value.shape[1], ignored)
        at = _at(labels, ignored)
        d = x_grad.reserve(x.value.shape)
        d.fill(0)
        d[at] = grad.value[:, 0] * (labels != ignored) / -_not_zero(x.value[at])

    return run


def _soft_cross_entropy(op: Bound) -> Step:
    x, label, out, logs = op.one("input"), op.one("label"), op.one("out"), op.scratch()

    def run() -> None:
        log = logs.reserve(x.value.shape)
        np.log(np.maximum(x.value, np.finfo(log.dtype).tiny, out=log), out=log)
        result = out.reserve((len(log), 1))
        np.einsum("nc,nc->n", log, label.value, out=result[:, 0])
        result *= -1

    return run


def _soft_cross_entropy_grad(op: Bound) -> Step:
    x, label, grad, x_grad = op.each("input", "label", "out@GRAD", "input@GRAD")

    def run() -> None:
        d = x_grad.reserve(x.value.shape)
        np.maximum(x.value, np.finfo(d.dtype).tiny, out=d)
        np.divide(label.value, d, out=d)
        d *= -grad.value

    return run


@computes("softmax_with_cross_entropy")
def softmax_with_cross_entropy(op: Bound) -> Step:
    """−log softmax(x)[k] = log Σ exp(x − max) − (x_k − max), without rounding of a probability."""
    if op.attrs["soft_label"]:
        return _soft_softmax_with_cross_entropy(op)
    x, label, out, softmax = op.one("logits"), op.one("label"), op.one("out"), op.one("softmax")
    write, ignored = softmax_loss(op), op.attrs["ignore_index"]

    def run() -> None:
        labels = class_labels(label.value, x.value.shape[1], ignored)
        write(x.value, labels, softmax.reserve(x.value.shape), out.reserve((len(labels), 1)))

    return run


def softmax_loss(op: Bound) -> Callable[[Array, I64, Array, Array], None]:
    """Returns `write(logits, labels, softmax, loss)`: softmax of the logits (n, c), which may alias
    it, and the loss (n, 1) of the labels (n,)."""
    shift, normalize_ = op.kernel(losses.shift), op.kernel(losses.normalize_)
    ignored = op.attrs.get("ignore_index", -1)

    def write(logits: Array, labels: I64, softmax: Array, loss: Array) -> None:
        column = loss[:, 0]
        shift(np.ascontiguousarray(logits), softmax)
        at_label = softmax[_at(labels, ignored)]
        np.exp(softmax, out=softmax)
        normalize_(softmax, column)
        column -= at_label
        column[labels == ignored] = 0

    return write


def softmax_loss_grad(op: Bound) -> Callable[[Array, I64, Array, Array], None]:
    """Returns `write(softmax, labels, d, out)`: the gradient of the logits, for d (n, 1)."""
    write, ignored = op.kernel(losses.softmax_cross_entropy_grad), op.attrs.get("ignore_index", -1)
    return lambda softmax, labels, d, out: write(softmax, labels, ignored, d.reshape(-1), out)


@computes("softmax_with_cross_entropy_grad")
def softmax_with_cross_entropy_grad(op: Bound) -> Step:
    if op.attrs["soft_label"]:
        return _soft_softmax_with_cross_entropy_grad(op)
    softmax, label = op.one("softmax"), op.one("label")
    grad, x_grad, write = op.one("out@GRAD"), op.one("logits@GRAD"), softmax_loss_grad(op)

    def run() -> None:
        d = x_grad.reserve(softmax.value.shape)
        write(softmax.value, label.value.reshape(-1), grad.value, d)

    return run


def _soft_softmax_with_cross_entropy(op: Bound) -> Step:
    """Σ_k t_k (log Σ exp(x − max) − (x_k − max)) for class probabilities t."""
    x, label, out, softmax = op.one("logits"), op.one("label"), op.one("out"), op.one("softmax")
    shift, normalize_ = op.kernel(losses.shift), op.kernel(losses.normalize_)

    def run() -> None:
        probabilities, powers = label.value, softmax.reserve(x.value.shape)
        column = out.reserve((len(powers), 1))[:, 0]
        shift(np.ascontiguousarray(x.value), powers)
        shifted = np.einsum("nc,nc->n", probabilities, powers)
        np.exp(powers, out=powers)
        normalize_(powers, column)
        column *= probabilities.sum(axis=1)
        column -= shifted

    return run


def _soft_softmax_with_cross_entropy_grad(op: Bound) -> Step:
    softmax, label = op.one("softmax"), op.one("label")
    grad, x_grad = op.one("out@GRAD"), op.one("logits@GRAD")

    def run() -> None:
        probabilities, d = label.value, x_grad.reserve(softmax.value.shape)
        np.multiply(softmax.value, probabilities.sum(axis=1, keepdims=True), out=d)
        d -= probabilities
        d *= grad.value

    return run
