"""Losses made of other layers, and labels for them."""

from __future__ import annotations

from psrt.core.errors import ProgramError
from psrt.fluid.adapting.composed.calls import called
from psrt.fluid.names import Variable
from psrt.graph import layers as psrt_layers


def mse_loss(input: Variable, label: Variable) -> Variable:
    """Mean of (input − label)², a scalar."""
    return called(psrt_layers.mean, called(psrt_layers.square, input - label))


def label_smooth(
    label: Variable,
    prior_dist: Variable | None = None,
    epsilon: float = 0.1,
    dtype: str = "float32",
    name: str | None = None,
) -> Variable:
    """(1 − epsilon) · label + epsilon · prior_dist, or epsilon / classes without one."""
    kept = label * (1.0 - epsilon)
    if prior_dist is None:
        return kept + epsilon / label.shape[-1]
    return called(psrt_layers.elementwise_add, kept, prior_dist * epsilon)


def kldiv_loss(
    x: Variable, target: Variable, reduction: str = "mean", name: str | None = None
) -> Variable:
    """Kullback-Leibler divergence target · (log target − x); x are logarithms of probabilities.

    0 where the target is. `reduction` is none, mean and sum over all elements, or batchmean, the
    sum divided by the number of examples. Raises `ProgramError` for another one.
    """
    none = called(psrt_layers.zeros_like, target)
    is_there = target > 0.0
    safe = called(psrt_layers.where, is_there, target, none + 1.0)
    loss = target * (called(psrt_layers.log, safe) - x)
    loss = called(psrt_layers.where, is_there, loss, none)
    if reduction == "none":
        return loss
    if reduction == "mean":
        return called(psrt_layers.mean, loss)
    if reduction == "sum":
        return called(psrt_layers.reduce_sum, loss)
    if reduction == "batchmean":
        of_example = called(psrt_layers.reduce_sum, loss, list(range(1, len(loss.shape))), True)
        return called(psrt_layers.mean, of_example)
    raise ProgramError(
        f"layers.kldiv_loss was given reduction {reduction!r}.",
        hint="Use 'mean', 'batchmean', 'sum' or 'none'.",
    )


def dice_loss(
    input: Variable, label: Variable, epsilon: float = 1e-5, name: str | None = None
) -> Variable:
    """Mean over examples of 1 − 2 · |both| / (|input| + |label| + epsilon).

    `input` (rows, …, classes) holds probabilities, `label` int64 (rows, …, 1) classes.
    """
    wanted = called(psrt_layers.one_hot, label, input.shape[-1])
    axes = list(range(1, len(input.shape)))
    both = called(psrt_layers.reduce_sum, input * wanted, axes)
    each = called(psrt_layers.reduce_sum, input, axes) + called(
        psrt_layers.reduce_sum, wanted, axes
    )
    return called(psrt_layers.mean, both * -2.0 / (each + epsilon) + 1.0)


def teacher_student_sigmoid_loss(
    input: Variable,
    label: Variable,
    soft_max_up_bound: float = 15.0,
    soft_max_lower_bound: float = -15.0,
) -> Variable:
    """Log loss of clicks, and of what a teacher predicts, of logits: floats (rows, 1).

    A label is −2 without and −1 with a click, where there is no teacher; else the teacher's
    probability, and 1 more with a click. Logits beyond the bounds have no gradient.
    """
    bounded = called(psrt_layers.clip, input, soft_max_lower_bound, soft_max_up_bound)
    found, trained = (_of_clicks_and_teacher(x, label) for x in (input, bounded))
    beyond = found - trained
    beyond.stop_gradient = True
    return trained + beyond


def _of_clicks_and_teacher(x: Variable, label: Variable) -> Variable:
    of_teacher, above_one, without_click = (
        called(psrt_layers.cast, test, "float32")
        for test in (label >= 0.0, label >= 1.0, label < -1.0)
    )
    click = above_one + (1.0 - of_teacher) * (1.0 - without_click)
    of_clicks = called(psrt_layers.sigmoid_cross_entropy_with_logits, x, click)
    predicted = (label - above_one) * of_teacher
    return of_clicks + of_teacher * called(
        psrt_layers.sigmoid_cross_entropy_with_logits, x, predicted
    )


__all__ = ["dice_loss", "kldiv_loss", "label_smooth", "mse_loss", "teacher_student_sigmoid_loss"]
