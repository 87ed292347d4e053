"""Losses over a sample of many classes: products of examples with rows, and losses of these."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from psrt.core.types import Array, Shape
from psrt.executor.compute.losses.class_losses import softmax_loss
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.executor.memory import Cell
from psrt.graph.ops import ROWS
from psrt.kernels.ops import losses, sampling

# --- products of an example with its rows ---------------------------------------------------------


def _is_shared(op: Bound) -> bool:
    """True if all examples have the same rows."""
    return op.shapes("w")[0][0] != ROWS


@computes("row_dot")
def row_dot(op: Bound) -> Step:
    x, w, bias, out = op.one("input"), op.one("w"), op.maybe("bias"), op.one("out")
    is_shared = _is_shared(op)

    def run() -> None:
        rows = w.value
        result = out.reserve((len(x.value), rows.shape[1]))
        if is_shared:
            np.matmul(x.value, rows[0].T, out=result)
        else:
            np.einsum("nd,nkd->nk", x.value, rows, out=result)
        if bias is not None:
            result += bias.value[:, :, 0]

    return run


@computes("row_dot_grad")
def row_dot_grad(op: Bound) -> Step:
    products, bias_grad = _product_grad(op), op.maybe("bias@GRAD")
    grad, is_shared = op.one("out@GRAD"), _is_shared(op)

    def run() -> None:
        d = np.ascontiguousarray(grad.value)
        products(d)
        if bias_grad is None:
            return
        if is_shared:
            np.sum(d, axis=0, out=bias_grad.reserve((1, d.shape[1], 1))[0, :, 0])
        else:
            np.copyto(bias_grad.reserve((*d.shape, 1)), d[:, :, None])

    return run


def _product_grad(op: Bound) -> Callable[[Array], None]:
    x, w, x_grad, w_grad = op.one("input"), op.one("w"), op.maybe("input@GRAD"), op.maybe("w@GRAD")
    if _is_shared(op):
        return _shared_product_grad(x, w, x_grad, w_grad)
    write, spare = op.kernel(sampling.row_dot_grad), op.scratch()
    x_target, w_target = x_grad or spare, w_grad or spare

    def run(d: Array) -> None:
        a, rows = np.ascontiguousarray(x.value), np.ascontiguousarray(w.value)
        write(a, rows, d, x_target.reserve(a.shape), w_target.reserve(rows.shape))

    return run


def _shared_product_grad(
    x: Cell, w: Cell, x_grad: Cell | None, w_grad: Cell | None
) -> Callable[[Array], None]:
    def run(d: Array) -> None:
        if x_grad is not None:
            np.matmul(d, w.value[0], out=x_grad.reserve(x.value.shape))
        if w_grad is not None:
            np.matmul(d.T, x.value, out=w_grad.reserve(w.value.shape)[0])

    return run


# --- losses of the products -----------------------------------------------------------------------


def _label_first(op: Bound) -> Callable[[Shape], Array]:
    """Signs of (label, negatives): +1 in column 0, −1 elsewhere."""
    kept = op.own()

    def signs(shape: Shape) -> Array:
        if kept.value.shape != shape:
            kept.reserve(shape).fill(-1)
            kept.value[:, 0] = 1
        return kept.value

    return signs


def _corrected(op: Bound) -> Callable[[], Array]:
    """Logits minus the logarithm of the expected number of draws of their class."""
    logits, log_expected, scratch = op.one("logits"), op.maybe("log_expected"), op.scratch()
    if log_expected is None:
        return lambda: np.ascontiguousarray(logits.value)

    def run() -> Array:
        out: Array = scratch.reserve(logits.value.shape)
        return np.subtract(logits.value, log_expected.value, out=out)

    return run


@computes("noise_contrastive_loss")
def noise_contrastive_loss(op: Bound) -> Step:
    corrected, signs, out = _corrected(op), _label_first(op), op.one("out")
    loss = op.kernel(losses.signed_logistic)

    def run() -> None:
        x = corrected()
        loss(x, signs(x.shape), out.reserve((len(x), 1)).reshape(-1))

    return run


@computes("noise_contrastive_loss_grad")
def noise_contrastive_loss_grad(op: Bound) -> Step:
    corrected, signs, grad = _corrected(op), _label_first(op), op.one("out@GRAD")
    x_grad, loss_grad = op.one("logits@GRAD"), op.kernel(losses.signed_logistic_grad)

    def run() -> None:
        x = corrected()
        loss_grad(x, signs(x.shape), grad.value.reshape(-1), x_grad.reserve(x.shape))

    return run


@computes("path_loss")
def path_loss(op: Bound) -> Step:
    logits, signs, out = op.one("logits"), op.one("signs"), op.one("out")
    loss = op.kernel(losses.signed_logistic)

    def run() -> None:
        x = np.ascontiguousarray(logits.value)
        loss(x, signs.value, out.reserve((len(x), 1)).reshape(-1))

    return run


@computes("path_loss_grad")
def path_loss_grad(op: Bound) -> Step:
    logits, signs, grad = op.one("logits"), op.one("signs"), op.one("out@GRAD")
    x_grad, loss_grad = op.one("logits@GRAD"), op.kernel(losses.signed_logistic_grad)

    def run() -> None:
        x = np.ascontiguousarray(logits.value)
        loss_grad(x, signs.value, grad.value.reshape(-1), x_grad.reserve(x.shape))

    return run


@computes("sampled_softmax_loss")
def sampled_softmax_loss(op: Bound) -> Step:
    out, softmax, write = op.one("out"), op.one("softmax"), softmax_loss(op)
    fill = _fill_logits(op)

    def run() -> None:
        logits = fill(softmax)
        write(logits, np.zeros(len(logits), np.int64), logits, out.reserve((len(logits), 1)))

    return run


def _fill_logits(op: Bound) -> Callable[[Cell], Array]:
    """Corrected logits (rows, 1 + samples), that of the label first."""
    true, true_expected = op.one("true_logits"), op.one("label_log_expected")
    drawn, drawn_expected = op.one("logits"), op.one("log_expected")
    label, samples, exclude_ = op.one("label"), op.one("samples"), op.kernel(sampling.exclude_hits_)
    removes = op.attrs["remove_accidental_hits"]

    def fill(target: Cell) -> Array:
        rows, count = drawn.value.shape
        logits = target.reserve((rows, 1 + count))
        np.subtract(true.value, true_expected.value, out=logits[:, :1])
        np.subtract(drawn.value, drawn_expected.value, out=logits[:, 1:])
        if removes:
            exclude_(logits, 1, label.value.reshape(-1), samples.value.reshape(-1))
        return logits

    return fill


@computes("sampled_softmax_loss_grad")
def sampled_softmax_loss_grad(op: Bound) -> Step:
    softmax, grad = op.one("softmax"), op.one("out@GRAD")
    true_grad, drawn_grad = op.maybe("true_logits@GRAD"), op.maybe("logits@GRAD")

    def run() -> None:
        p, d = softmax.value, grad.value
        if true_grad is not None:
            np.multiply(p[:, :1] - 1, d, out=true_grad.reserve((len(p), 1)))
        if drawn_grad is not None:
            np.multiply(p[:, 1:], d, out=drawn_grad.reserve((len(p), p.shape[1] - 1)))

    return run
