"""Arithmetic with broadcasting, comparisons, and sums of several inputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np

from psrt.core.types import Array, Shape
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.executor.memory import Cell
from psrt.graph.ops import aligned

# --- forward --------------------------------------------------------------------------------------


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
computes("elementwise_max")(lambda op: _forward(op, np.maximum))
computes("elementwise_min")(lambda op: _forward(op, np.minimum))
computes("elementwise_mod")(lambda op: _forward(op, np.remainder))
computes("elementwise_pow")(lambda op: _forward(op, np.power))

# --- comparisons ----------------------------------------------------------------------------------

_COMPARISONS = {
    "less_than": np.less,
    "less_equal": np.less_equal,
    "greater_than": np.greater,
    "greater_equal": np.greater_equal,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}


for _type, _function in _COMPARISONS.items():
    computes(_type)(partial(_forward, function=_function))


@computes("logical_not")
def logical_not(op: Bound) -> Step:
    x, out = op.one("x"), op.one("out")

    def run() -> None:
        np.logical_not(x.value, out=out.reserve(x.value.shape))

    return run


@computes("where")
def where(op: Bound) -> Step:
    condition, x, y, out = op.each("condition", "x", "y", "out")

    def run() -> None:
        result = out.reserve(x.value.shape)
        np.copyto(result, y.value)
        np.copyto(result, x.value, where=condition.value)

    return run


@computes("where_grad")
def where_grad(op: Bound) -> Step:
    condition, grad = op.each("condition", "out@GRAD")
    targets = ((op.maybe("x@GRAD"), False), (op.maybe("y@GRAD"), True))

    def run() -> None:
        for target, is_zero in targets:
            if target is not None:
                result = target.reserve(grad.value.shape)
                np.copyto(result, grad.value)
                np.copyto(result, 0, where=condition.value == is_zero)

    return run


# --- backward -------------------------------------------------------------------------------------

Part: TypeAlias = Callable[[Array, Array, Array, Array, Array], object]
"""`part(d, x, y, out, into)` writes one gradient before broadcast dimensions are summed."""


def _backward(op: Bound, x_part: Part | None, y_part: Part | None) -> Step:
    """The gradients of x and y; a part of None is d itself."""
    x, y, grad, out = op.one("x"), op.one("y"), op.one("out@GRAD"), op.maybe("out")
    x_grad, y_grad, spare = op.maybe("x@GRAD"), op.maybe("y@GRAD"), op.scratch()
    axis = op.attrs["axis"]

    def run() -> None:
        d, a = grad.value, x.value
        b = y.value.reshape(aligned(y.value.shape, a.ndim, axis))
        z = d if out is None else out.value

        def write(part: Part | None, to: Cell, shape: Shape, broadcast_from: Shape) -> None:
            is_whole = d.shape == broadcast_from
            if part is None and is_whole:
                to.alias(d.reshape(shape))
                return
            made = d
            if part is not None:
                made = to.reserve(shape).reshape(d.shape) if is_whole else spare.reserve(d.shape)
                part(d, a, b, z, made)
            if not is_whole:
                sum_to(made, broadcast_from, to.reserve(shape))

        if x_grad is not None:
            write(x_part, x_grad, a.shape, a.shape)
        if y_grad is not None:
            write(y_part, y_grad, y.value.shape, b.shape)

    return run


def sum_to(grad: Array, broadcast_from: Shape, out: Array) -> None:
    """Sum `grad` over the dimensions in which `broadcast_from` was broadcast."""
    padded = (1,) * (grad.ndim - len(broadcast_from)) + broadcast_from
    axes = tuple(i for i, size in enumerate(padded) if size == 1 and grad.shape[i] != 1)
    np.sum(grad, axis=axes, keepdims=True, out=out.reshape(padded))


def _masked(compare: np.ufunc) -> Part:
    """d where `compare(x, y)`, else 0."""

    def part(d: Array, x: Array, y: Array, out: Array, into: Array) -> None:
        np.multiply(compare(x, y, out=into), d, out=into)

    return part


def _times_y(d: Array, x: Array, y: Array, out: Array, into: Array) -> None:
    np.multiply(d, y, out=into)


def _times_x(d: Array, x: Array, y: Array, out: Array, into: Array) -> None:
    np.multiply(d, x, out=into)


def _minus(d: Array, x: Array, y: Array, out: Array, into: Array) -> None:
    np.negative(d, out=into)


def _by_y(d: Array, x: Array, y: Array, out: Array, into: Array) -> None:
    np.divide(d, y, out=into)


def _of_divisor(d: Array, x: Array, y: Array, out: Array, into: Array) -> None:
    """−d out / y."""
    np.divide(np.multiply(d, out, out=into), y, out=into)
    np.negative(into, out=into)


def _of_base(d: Array, x: Array, y: Array, out: Array, into: Array) -> None:
    """d y x^(y − 1)."""
    np.power(x, np.subtract(y, 1, out=into), out=into)
    np.multiply(np.multiply(into, y, out=into), d, out=into)


def _of_exponent(d: Array, x: Array, y: Array, out: Array, into: Array) -> None:
    """d out ln x."""
    np.multiply(np.log(x, out=into), out, out=into)
    np.multiply(into, d, out=into)


computes("elementwise_add_grad")(lambda op: _backward(op, None, None))
computes("elementwise_sub_grad")(lambda op: _backward(op, None, _minus))
computes("elementwise_mul_grad")(lambda op: _backward(op, _times_y, _times_x))
computes("elementwise_div_grad")(lambda op: _backward(op, _by_y, _of_divisor))
computes("elementwise_max_grad")(
    lambda op: _backward(op, _masked(np.greater), _masked(np.less_equal))
)
computes("elementwise_min_grad")(
    lambda op: _backward(op, _masked(np.less), _masked(np.greater_equal))
)
computes("elementwise_pow_grad")(lambda op: _backward(op, _of_base, _of_exponent))

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
            target.alias(grad.value)

    return run
