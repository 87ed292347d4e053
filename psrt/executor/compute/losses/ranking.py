"""Ranking losses: one class against the others, score against score, a pair against the batch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from psrt.core.types import I64, Array
from psrt.executor.compute.losses.class_losses import class_labels, softmax_loss, softmax_loss_grad
from psrt.executor.compute.losses.losses import opposite_gradients
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.kernels.ops import losses, nn

# --- one class with the others --------------------------------------------------------------------


@computes("bpr_loss")
def bpr_loss(op: Bound) -> Step:
    x, label, out = op.one("input"), op.one("label"), op.one("out")
    loss = op.kernel(losses.bayesian_ranking)

    def run() -> None:
        scores = np.ascontiguousarray(x.value)
        labels = class_labels(label.value, scores.shape[1])
        loss(scores, labels, out.reserve((len(labels), 1)).reshape(-1))

    return run


@computes("bpr_loss_grad")
def bpr_loss_grad(op: Bound) -> Step:
    x, label, grad, x_grad = op.each("input", "label", "out@GRAD", "input@GRAD")
    loss_grad = op.kernel(losses.bayesian_ranking_grad)

    def run() -> None:
        scores, d = np.ascontiguousarray(x.value), grad.value.reshape(-1)
        loss_grad(scores, label.value.reshape(-1), d, x_grad.reserve(scores.shape))

    return run


# --- one score with another -----------------------------------------------------------------------


@computes("rank_loss")
def rank_loss(op: Bound) -> Step:
    """Cross-entropy of the logit left − right."""
    left, right, label, out = op.one("left"), op.one("right"), op.one("label"), op.one("out")
    loss = op.kernel(nn.sigmoid_cross_entropy)

    def run() -> None:
        logits = np.subtract(left.value, right.value, out=out.reserve(left.value.shape)).reshape(-1)
        loss(logits, label.value.reshape(-1), logits)

    return run


@computes("rank_loss_grad")
def rank_loss_grad(op: Bound) -> Step:
    left, right, label, grad = op.one("left"), op.one("right"), op.one("label"), op.one("out@GRAD")
    loss_grad = op.kernel(nn.sigmoid_cross_entropy_grad)

    def write(d: Array) -> None:
        logits = np.subtract(left.value, right.value, out=d).reshape(-1)
        loss_grad(logits, label.value.reshape(-1), grad.value.reshape(-1), logits)

    return opposite_gradients(op.maybe("left@GRAD"), op.maybe("right@GRAD"), left, write)


@computes("margin_rank_loss")
def margin_rank_loss(op: Bound) -> Step:
    left, right, label, out = op.one("left"), op.one("right"), op.one("label"), op.one("out")
    margin = op.attrs["margin"]

    def run() -> None:
        result = np.subtract(right.value, left.value, out=out.reserve(left.value.shape))
        result *= label.value
        result += margin
        np.maximum(result, 0, out=result)

    return run


@computes("margin_rank_loss_grad")
def margin_rank_loss_grad(op: Bound) -> Step:
    label, out, grad = op.one("label"), op.one("out"), op.one("out@GRAD")

    def write(d: Array) -> None:
        np.multiply(grad.value, label.value, out=d)
        d *= -1
        d *= out.value > 0

    return opposite_gradients(op.maybe("left@GRAD"), op.maybe("right@GRAD"), out, write)


# --- a pair with the batch ------------------------------------------------------------------------


@computes("in_batch_softmax_loss")
def in_batch_softmax_loss(op: Bound) -> Step:
    user, item, probability = op.one("user"), op.one("item"), op.maybe("item_probability")
    out, softmax, write, rows = op.one("out"), op.one("softmax"), softmax_loss(op), _row_numbers()
    scale = 1 / op.attrs["temperature"]

    def run() -> None:
        count = len(user.value)
        scores = softmax.reserve((count, count))
        np.matmul(user.value, item.value.T, out=scores)
        scores *= scale
        if probability is not None:
            scores -= np.log(probability.value).reshape(1, -1)
        write(scores, rows(count), scores, out.reserve((count, 1)))

    return run


@computes("in_batch_softmax_loss_grad")
def in_batch_softmax_loss_grad(op: Bound) -> Step:
    user, item, softmax = op.one("user"), op.one("item"), op.one("softmax")
    grad, user_grad, item_grad = op.one("out@GRAD"), op.maybe("user@GRAD"), op.maybe("item@GRAD")
    write, rows, scratch = softmax_loss_grad(op), _row_numbers(), op.scratch()
    scale = 1 / op.attrs["temperature"]

    def run() -> None:
        d = scratch.reserve(softmax.value.shape)
        write(softmax.value, rows(len(d)), grad.value * scale, d)
        if user_grad is not None:
            np.matmul(d, item.value, out=user_grad.reserve(user.value.shape))
        if item_grad is not None:
            np.matmul(d.T, user.value, out=item_grad.reserve(item.value.shape))

    return run


def _row_numbers() -> Callable[[int], I64]:
    """0, 1, …: the label of each user, kept from step to step."""
    kept: I64 = np.arange(0)

    def rows(count: int) -> I64:
        nonlocal kept
        if len(kept) < count:
            kept = np.arange(count)
        return kept[:count]

    return rows
