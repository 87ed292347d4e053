"""Losses by element: binary cross-entropy, distances, losses of one score and a label.

Plain numpy: most have one element per example, so temporaries are columns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from psrt.core.types import Array
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.executor.memory import Cell
from psrt.kernels.ops import EagerBackend, nn

# --- binary cross-entropy -------------------------------------------------------------------------


@computes("sigmoid_cross_entropy_with_logits")
def sigmoid_cross_entropy(op: Bound) -> Step:
    x, label, out = op.one("x"), op.one("label"), op.one("out")
    loss, count_ = op.kernel(nn.sigmoid_cross_entropy), _counted(op)

    def run() -> None:
        result = out.reserve(x.value.shape)
        loss(x.value.reshape(-1), label.value.reshape(-1), result.reshape(-1))
        count_(result)

    return run


@computes("sigmoid_cross_entropy_with_logits_grad")
def sigmoid_cross_entropy_grad(op: Bound) -> Step:
    x, label, grad, x_grad = op.one("x"), op.one("label"), op.one("out@GRAD"), op.one("x@GRAD")
    loss_grad, count_ = op.kernel(nn.sigmoid_cross_entropy_grad), _counted(op)

    def run() -> None:
        d = x_grad.reserve(x.value.shape)
        flat = (cell.value.reshape(-1) for cell in (x, label, grad))
        loss_grad(*flat, d.reshape(-1))
        count_(d)

    return run


@computes("sigmoid_loss")
def sigmoid_loss(op: Bound) -> Step:
    x, label, out, slope = op.one("x"), op.one("label"), op.one("out"), op.one("slope")

    def record(commands: EagerBackend) -> None:
        result, slopes = out.reserve(x.value.shape), slope.reserve(x.value.shape)
        given = x.value.reshape(-1), label.value.reshape(-1)
        commands.sigmoid_loss(*given, result.reshape(-1), slopes.reshape(-1))

    return op.recorded(record)


@computes("sigmoid_loss_grad")
def sigmoid_loss_grad(op: Bound) -> Step:
    slope, grad, x_grad = op.one("slope"), op.one("out@GRAD"), op.one("x@GRAD")

    def record(commands: EagerBackend) -> None:
        commands.multiply(slope.value, grad.value, x_grad.reserve(slope.value.shape))

    return op.recorded(record)


def _counted(op: Bound) -> Callable[[Array], None]:
    """Applies ignore_index and normalize to losses or their gradients, in place."""
    label, ignored, normalize = op.one("label"), op.attrs["ignore_index"], op.attrs["normalize"]

    def run(values: Array) -> None:
        count = values.size
        if ignored is not None:
            skipped = label.value == ignored
            values[skipped] = 0
            count -= int(np.count_nonzero(skipped))
        if normalize:
            values /= max(count, 1)

    return run if normalize or ignored is not None else lambda values: None


# --- distances ------------------------------------------------------------------------------------


def opposite_gradients(
    x_grad: Cell | None, y_grad: Cell | None, like: Cell, write: Callable[[Array], None]
) -> Step:
    """Gradients of a function of x − y: `write` computes that of x; that of y is its negative.

    Both have the shape of `like`.
    """
    first = x_grad or y_grad
    assert first is not None

    def run() -> None:
        d = first.reserve(like.value.shape)
        write(d)
        if x_grad is None:
            np.negative(d, out=d)
        elif y_grad is not None:
            np.negative(d, out=y_grad.reserve(d.shape))

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

    def write(d: Array) -> None:
        np.subtract(x.value, label.value, out=d)
        d *= grad.value
        d *= 2

    return opposite_gradients(op.maybe("input@GRAD"), op.maybe("label@GRAD"), x, write)


def _huber_(r: Array, delta: float, clipped: Array) -> None:
    """`r` = c · (r − c / 2) for c = r cut to ±delta, which is both branches of the definition."""
    np.clip(r, -delta, delta, out=clipped)
    r *= 2
    r -= clipped
    r *= clipped
    r *= 0.5


@computes("huber_loss")
def huber_loss(op: Bound) -> Step:
    x, label, out = op.one("input"), op.one("label"), op.one("out")
    delta, clipped = op.attrs["delta"], op.scratch()

    def run() -> None:
        result = np.subtract(x.value, label.value, out=out.reserve(x.value.shape))
        _huber_(result, delta, clipped.reserve(result.shape))

    return run


@computes("huber_loss_grad")
def huber_loss_grad(op: Bound) -> Step:
    x, label, grad = op.one("input"), op.one("label"), op.one("out@GRAD")
    delta = op.attrs["delta"]

    def write(d: Array) -> None:
        np.subtract(x.value, label.value, out=d)
        np.clip(d, -delta, delta, out=d)
        d *= grad.value

    return opposite_gradients(op.maybe("input@GRAD"), op.maybe("label@GRAD"), x, write)


@computes("smooth_l1")
def smooth_l1(op: Bound) -> Step:
    """σ² times the Huber loss whose parabola ends at 1 / σ²."""
    x, y, out = op.one("x"), op.one("y"), op.one("out")
    square, scratch = op.attrs["sigma"] ** 2, op.scratch()

    def run() -> None:
        both = scratch.reserve((2, *x.value.shape))
        np.subtract(x.value, y.value, out=both[0])
        _huber_(both[0], 1 / square, both[1])
        by_example = both[0].reshape(len(x.value), -1)
        result = np.sum(by_example, axis=1, keepdims=True, out=out.reserve((len(by_example), 1)))
        result *= square

    return run


@computes("smooth_l1_grad")
def smooth_l1_grad(op: Bound) -> Step:
    x, y, grad = op.one("x"), op.one("y"), op.one("out@GRAD")
    square = op.attrs["sigma"] ** 2

    def write(d: Array) -> None:
        np.subtract(x.value, y.value, out=d)
        np.clip(d, -1 / square, 1 / square, out=d)
        d *= (grad.value * square).reshape(-1, *(1,) * (d.ndim - 1))

    return opposite_gradients(op.maybe("x@GRAD"), op.maybe("y@GRAD"), x, write)


# --- losses of one score and a label 0 or 1 -------------------------------------------------------


@computes("hinge_loss")
def hinge_loss(op: Bound) -> Step:
    x, label, out = op.one("input"), op.one("label"), op.one("out")

    def run() -> None:
        result = np.multiply(x.value, 1 - 2 * label.value, out=out.reserve(x.value.shape))
        result += 1
        np.maximum(result, 0, out=result)

    return run


@computes("hinge_loss_grad")
def hinge_loss_grad(op: Bound) -> Step:
    x, label, grad, x_grad = op.each("input", "label", "out@GRAD", "input@GRAD")

    def run() -> None:
        sign = 1 - 2 * label.value
        d = np.multiply(grad.value, sign, out=x_grad.reserve(x.value.shape))
        d *= x.value * sign > -1

    return run


@computes("log_loss")
def log_loss(op: Bound) -> Step:
    x, label, out = op.one("input"), op.one("label"), op.one("out")
    epsilon = op.attrs["epsilon"]

    def run() -> None:
        p, z = x.value, label.value
        result = np.multiply(-z, np.log(p + epsilon), out=out.reserve(p.shape))
        result -= (1 - z) * np.log(1 - p + epsilon)

    return run


@computes("log_loss_grad")
def log_loss_grad(op: Bound) -> Step:
    x, label, grad, x_grad = op.each("input", "label", "out@GRAD", "input@GRAD")
    epsilon = op.attrs["epsilon"]

    def run() -> None:
        p, z = x.value, label.value
        d = np.divide(1 - z, 1 - p + epsilon, out=x_grad.reserve(p.shape))
        d -= z / (p + epsilon)
        d *= grad.value

    return run
