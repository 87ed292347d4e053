"""Arithmetic with broadcasting, activations, sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from psrt.core.types import Array, Shape
from psrt.executor.cells import Cell
from psrt.executor.compute.table import Bound, Step, computes
from psrt.graph.ops.elementwise import aligned
from psrt.kernels import nn
from psrt.kernels.jit import Kernel

# --- arithmetic -----------------------------------------------------------------------------------


def _forward(op: Bound, function: np.ufunc) -> Step:
    x, y, out = op.one("x"), op.one("y"), op.one("out")
    axis = op.attrs["axis"]

    def run() -> None:
        a, b = x.value, y.value
        b = b.reshape(aligned(b.shape, a.ndim, axis))
        function(a, b, out=out.reserve(np.broadcast_shapes(a.shape, b.shape)))

    return run


computes("elementwise_add")(lambda op: _forward(op, np.add))
computes("elementwise_sub")(lambda op: _forward(op, np.subtract))
computes("elementwise_mul")(lambda op: _forward(op, np.multiply))
computes("elementwise_div")(lambda op: _forward(op, np.divide))


def _backward(op: Bound, x_part: Callable[..., Array], y_part: Callable[..., Array]) -> Step:
    """`x_part(d, x, y)` and `y_part(d, x, y)` before the broadcast dimensions are summed."""
    x, y, grad = op.one("x"), op.one("y"), op.one("out@GRAD")
    x_grad, y_grad = op.maybe("x@GRAD"), op.maybe("y@GRAD")
    axis = op.attrs["axis"]

    def run() -> None:
        a, d = x.value, grad.value
        b = y.value.reshape(aligned(y.value.shape, a.ndim, axis))
        if x_grad is not None:
            _sum_to(x_part(d, a, b), a.shape, a.shape, x_grad)
        if y_grad is not None:
            _sum_to(y_part(d, a, b), b.shape, y.value.shape, y_grad)

    return run


def _sum_to(grad: Array, broadcast_from: Shape, shape: Shape, out: Cell) -> None:
    """Sum `grad` over the dimensions in which `broadcast_from` was stretched."""
    if grad.shape == broadcast_from:
        out.share(grad.reshape(shape))
        return
    padded = (1,) * (grad.ndim - len(broadcast_from)) + broadcast_from
    axes = tuple(i for i, size in enumerate(padded) if size == 1 and grad.shape[i] != 1)
    np.sum(grad, axis=axes, keepdims=True, out=out.reserve(shape).reshape(padded))


computes("elementwise_add_grad")(
    lambda op: _backward(op, lambda d, x, y: d, lambda d, x, y: d),
)
computes("elementwise_sub_grad")(
    lambda op: _backward(op, lambda d, x, y: d, lambda d, x, y: -d),
)
computes("elementwise_mul_grad")(
    lambda op: _backward(op, lambda d, x, y: d * y, lambda d, x, y: d * x),
)
computes("elementwise_div_grad")(
    lambda op: _backward(op, lambda d, x, y: d / y, lambda d, x, y: -d * x / (y * y)),
)

# --- activations ----------------------------------------------------------------------------------


def _activation(op: Bound, function: Callable[..., Any]) -> Step:
    """`function(x, out)` on flat arrays."""
    x, out = op.one("x"), op.one("out")

    def run() -> None:
        function(x.value.reshape(-1), out.reserve(x.value.shape).reshape(-1))

    return run


def _activation_grad(op: Bound, function: Callable[..., Any]) -> Step:
    """`function(out, grad_out, grad_x)` on flat arrays."""
    out, grad, x_grad = op.one("out"), op.one("out@GRAD"), op.one("x@GRAD")

    def run() -> None:
        d = x_grad.reserve(out.value.shape).reshape(-1)
        function(out.value.reshape(-1), grad.value.reshape(-1), d)

    return run


def _enter_activation(type: str, forward: Callable[..., Any] | Kernel, backward: Any) -> None:
    def form(op: Bound, function: Any) -> Callable[..., Any]:
        return op.form(function) if isinstance(function, Kernel) else function

    computes(type)(lambda op: _activation(op, form(op, forward)))
    computes(f"{type}_grad")(lambda op: _activation_grad(op, form(op, backward)))


def _tanh_grad(out: Array, grad: Array, x_grad: Array) -> None:
    np.multiply(out, out, out=x_grad)
    np.subtract(1, x_grad, out=x_grad)
    np.multiply(x_grad, grad, out=x_grad)


_enter_activation("relu", lambda x, out: np.maximum(x, 0, out=out), nn.relu_grad)
_enter_activation("sigmoid", nn.sigmoid, nn.sigmoid_grad)
_enter_activation("tanh", lambda x, out: np.tanh(x, out=out), _tanh_grad)


def softmax_into(x: Array, out: Array) -> None:
    """Over the last dimension, shifted by its maximum so that nothing overflows."""
    np.subtract(x, x.max(axis=-1, keepdims=True), out=out)
    np.exp(out, out=out)
    out /= out.sum(axis=-1, keepdims=True)


@computes("softmax")
def softmax(op: Bound) -> Step:
    x, out = op.one("x"), op.one("out")

    def run() -> None:
        softmax_into(x.value, out.reserve(x.value.shape))

    return run


@computes("softmax_grad")
def softmax_grad(op: Bound) -> Step:
    out, grad, x_grad = op.one("out"), op.one("out@GRAD"), op.one("x@GRAD")

    def run() -> None:
        d = x_grad.reserve(out.value.shape)
        weighted = (grad.value * out.value).sum(axis=-1, keepdims=True)
        np.subtract(grad.value, weighted, out=d)
        d *= out.value

    return run


# --- sums -----------------------------------------------------------------------------------------


@computes("sum")
def sum_all(op: Bound) -> Step:
    first, *others = op.all("x")
    out = op.one("out")

    def run() -> None:
        result = out.reserve(first.value.shape)
        np.copyto(result, first.value)
        for x in others:
            result += x.value

    return run


@computes("sum_grad")
def sum_grad(op: Bound) -> Step:
    grad, targets = op.one("out@GRAD"), op.all("x@GRAD")

    def run() -> None:
        for target in targets:
            target.share(grad.value)

    return run
