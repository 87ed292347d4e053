"""Fully connected layers: BLAS into memory that is there already, then one fused pass."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from psrt.core.types import Array
from psrt.executor.cells import Cell
from psrt.executor.compute.table import Bound, Step, computes
from psrt.kernels import nn


@computes("fc")
def fc(op: Bound) -> Step:
    (x, w), *others = zip(op.all("x"), op.all("w"), strict=True)
    out, product = op.one("out"), op.scratch()
    finish = _finish(op)

    def run() -> None:
        result = out.reserve((len(x.value), w.value.shape[1]))
        np.matmul(x.value, w.value, out=result)
        for other_x, other_w in others:
            result += np.matmul(other_x.value, other_w.value, out=product.reserve(result.shape))
        finish(result)

    return run


def _finish(op: Bound) -> Callable[[Array], object]:
    """Bias and activation, in place."""
    bias, is_relu = op.maybe("bias"), op.attrs["activation"] == "relu"
    if bias is not None:
        fused = op.form(nn.bias_relu_ if is_relu else nn.bias_)
        return lambda result: fused(result, bias.value)
    if is_relu:
        return lambda result: np.maximum(result, 0, out=result)
    return lambda result: None


@computes("fc_grad")
def fc_grad(op: Bound) -> Step:
    parts = list(zip(op.all("x"), op.all("w"), op.many("x@GRAD"), op.many("w@GRAD"), strict=True))
    bias_grad = op.maybe("bias@GRAD")
    before_activation = _before_activation(op)
    ones = op.own()

    def run() -> None:
        grad = before_activation()
        if bias_grad is not None:
            np.matmul(_ones(ones, len(grad)), grad, out=bias_grad.reserve(grad.shape[1:]))
        for x, w, x_grad, w_grad in parts:
            if w_grad is not None:
                np.matmul(x.value.T, grad, out=w_grad.reserve(w.value.shape))
            if x_grad is not None:
                # BLAS takes four times as long as a broadcast for an outer product.
                product = np.multiply if grad.shape[1] == 1 else np.matmul
                product(grad, w.value.T, out=x_grad.reserve(x.value.shape))

    return run


def _ones(cell: Cell, count: int) -> Array:
    """A product with ones is the fastest sum over rows."""
    if cell.value.shape != (count,):
        cell.reserve((count,)).fill(1)
    return cell.value


def _before_activation(op: Bound) -> Callable[[], Array]:
    """The gradient of what the activation was applied to."""
    out, out_grad = op.one("out"), op.one("out@GRAD")
    if op.attrs["activation"] != "relu":
        return lambda: out_grad.value
    masked, relu_grad = op.scratch(), op.form(nn.relu_grad)

    def run() -> Array:
        grad = masked.reserve(out.value.shape)
        relu_grad(out.value.reshape(-1), out_grad.value.reshape(-1), grad.reshape(-1))
        return grad

    return run
