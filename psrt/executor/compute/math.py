"""Elementwise functions on flat arrays, by table; softmax.

Functions that numpy computes in one vectorised pass use numpy; the others are compiled loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from psrt.core.types import Array
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.executor.memory import Cell
from psrt.graph.ops import BY_NAME
from psrt.kernels.jit import Kernel
from psrt.kernels.ops import activations, nn

Loop: TypeAlias = Callable[..., object]
"""`(x, out, *attrs)` forward, `(seen, d, grad_x, *attrs)` backward; `seen` is the x or out that the
gradient rule reads."""


def _flat(array: Array, spare: Cell) -> Array:
    """`array` flat; a strided one is copied into the memory of `spare`."""
    if not array.flags.c_contiguous:
        kept = spare.reserve(array.shape)
        np.copyto(kept, array)
        array = kept
    return array.reshape(-1)


def _compiled(op: Bound, loop: Loop) -> Loop:
    return op.kernel(loop) if isinstance(loop, Kernel) else loop


def _forward(op: Bound, loop: Loop, *args: float) -> Step:
    x, out, spare, function = op.one("x"), op.one("out"), op.scratch(), _compiled(op, loop)

    def run() -> None:
        function(_flat(x.value, spare), out.reserve(x.value.shape).reshape(-1), *args)

    return run


def _backward(op: Bound, loop: Loop, *args: float) -> Step:
    seen = op.one("x") if "x" in op.op.inputs else op.one("out")
    grad, x_grad, spare = op.one("out@GRAD"), op.one("x@GRAD"), op.scratch()
    function, private = _compiled(op, loop), op.own()

    def run() -> None:
        given, d = _flat(seen.value, private), _flat(grad.value, spare)
        function(given, d, x_grad.reserve(seen.value.shape).reshape(-1), *args)

    return run


def _register(type: str, forward: Loop, backward: Loop | None = None) -> None:
    """Register an op type; its attributes are passed in the order of the table `BY_NAME`."""

    def args(op: Bound) -> list[float]:
        return [op.attrs[name] for name in BY_NAME[type]]

    computes(type)(lambda op: _forward(op, forward, *args(op)))
    if backward is not None:
        computes(f"{type}_grad")(lambda op: _backward(op, backward, *args(op)))


def _of_x(function: np.ufunc) -> Loop:
    return lambda x, out: function(x, out=out)


def _times(function: np.ufunc) -> Loop:
    """d · function(seen)."""
    return lambda seen, d, grad_x: np.multiply(function(seen, out=grad_x), d, out=grad_x)


# --- activations ----------------------------------------------------------------------------------


def _clip(x: Array, out: Array, low: float, high: float) -> None:
    np.clip(x, low, high, out=out)


def _softsign(x: Array, out: Array) -> None:
    np.abs(x, out=out)
    np.add(out, 1, out=out)
    np.divide(x, out, out=out)


def _softsign_grad(out: Array, d: Array, grad_x: Array) -> None:
    np.subtract(1, np.abs(out, out=grad_x), out=grad_x)
    np.multiply(np.square(grad_x, out=grad_x), d, out=grad_x)


def _tanh_grad(out: Array, d: Array, grad_x: Array) -> None:
    np.subtract(1, np.square(out, out=grad_x), out=grad_x)
    np.multiply(grad_x, d, out=grad_x)


_register("relu", nn.relu, nn.relu_grad)
_register("leaky_relu", activations.leaky_relu, activations.leaky_relu_grad)
_register("elu", activations.elu, activations.elu_grad)
_register("sigmoid", nn.sigmoid, nn.sigmoid_grad)
_register("logsigmoid", activations.logsigmoid, activations.logsigmoid_grad)
_register("hard_sigmoid", activations.hard_sigmoid, activations.hard_sigmoid_grad)
_register("tanh", _of_x(np.tanh), _tanh_grad)
_register("gelu", activations.gelu, activations.gelu_grad)
_register("gelu_tanh", activations.gelu_tanh, activations.gelu_tanh_grad)
_register("softplus", activations.softplus, activations.softplus_grad)
_register("softsign", _softsign, _softsign_grad)
_register("swish", activations.swish, activations.swish_grad)

_cut = activations.between_grad
computes("relu6")(lambda op: _forward(op, _clip, 0.0, op.attrs["threshold"]))
computes("relu6_grad")(lambda op: _backward(op, _cut, 0.0, op.attrs["threshold"]))

# --- functions ------------------------------------------------------------------------------------


def _rsqrt(x: Array, out: Array) -> None:
    np.reciprocal(np.sqrt(x, out=out), out=out)


def _rsqrt_grad(out: Array, d: Array, grad_x: Array) -> None:
    """−d out³ / 2."""
    np.multiply(np.square(out, out=grad_x), out, out=grad_x)
    np.multiply(np.multiply(grad_x, -0.5, out=grad_x), d, out=grad_x)


def _sqrt_grad(out: Array, d: Array, grad_x: Array) -> None:
    np.multiply(np.divide(d, out, out=grad_x), 0.5, out=grad_x)


def _square_grad(x: Array, d: Array, grad_x: Array) -> None:
    np.multiply(np.multiply(x, d, out=grad_x), 2, out=grad_x)


def _reciprocal_grad(out: Array, d: Array, grad_x: Array) -> None:
    """−d out²."""
    np.multiply(np.square(out, out=grad_x), d, out=grad_x)
    np.negative(grad_x, out=grad_x)


def _cos_grad(x: Array, d: Array, grad_x: Array) -> None:
    np.multiply(np.sin(x, out=grad_x), d, out=grad_x)
    np.negative(grad_x, out=grad_x)


def _pow_grad(x: Array, d: Array, grad_x: Array, factor: float) -> None:
    np.multiply(np.power(x, factor - 1, out=grad_x), factor, out=grad_x)
    np.multiply(grad_x, d, out=grad_x)


_register("exp", _of_x(np.exp), _times(np.positive))
_register("log", _of_x(np.log), lambda x, d, grad_x: np.divide(d, x, out=grad_x))
_register("sqrt", _of_x(np.sqrt), _sqrt_grad)
_register("rsqrt", _rsqrt, _rsqrt_grad)
_register("square", _of_x(np.square), _square_grad)
_register("abs", _of_x(np.abs), _times(np.sign))
_register("reciprocal", _of_x(np.reciprocal), _reciprocal_grad)
_register("sin", _of_x(np.sin), _times(np.cos))
_register("cos", _of_x(np.cos), _cos_grad)
_register("sign", _of_x(np.sign))
_register("floor", _of_x(np.floor))
_register("ceil", _of_x(np.ceil))
_register("round", _of_x(np.rint))
_register("pow", lambda x, out, factor: np.power(x, factor, out=out), _pow_grad)


@computes("clip")
def clip(op: Bound) -> Step:
    x, out, low, high = op.one("x"), op.one("out"), op.attrs["min"], op.attrs["max"]
    return lambda: _clip(x.value, out.reserve(x.value.shape), low, high)


computes("clip_grad")(lambda op: _backward(op, _cut, op.attrs["min"], op.attrs["max"]))


@computes("scale")
def scale(op: Bound) -> Step:
    x, out = op.one("x"), op.one("out")
    # A Python number of the kind of the elements changes no dtype.
    number = float if out.dtype.kind == "f" else int
    factor, bias = number(op.attrs["scale"]), number(op.attrs["bias"])

    def run() -> None:
        result = np.multiply(x.value, factor, out=out.reserve(x.value.shape))
        if bias:
            result += bias

    return run


@computes("scale_grad")
def scale_grad(op: Bound) -> Step:
    grad, x_grad, factor = op.one("out@GRAD"), op.one("x@GRAD"), op.attrs["scale"]
    return lambda: np.multiply(grad.value, factor, out=x_grad.reserve(grad.value.shape))


# --- softmax --------------------------------------------------------------------------------------


def softmax_into(x: Array, out: Array, axis: int = -1) -> None:
    """Softmax, shifted by the maximum so that nothing overflows."""
    np.subtract(x, x.max(axis=axis, keepdims=True), out=out)
    np.exp(out, out=out)
    out /= out.sum(axis=axis, keepdims=True)


@computes("softmax")
def softmax(op: Bound) -> Step:
    x, out, axis = op.one("x"), op.one("out"), op.attrs.get("axis", -1)
    return lambda: softmax_into(x.value, out.reserve(x.value.shape), axis)


@computes("softmax_grad")
def softmax_grad(op: Bound) -> Step:
    out, grad, x_grad = op.one("out"), op.one("out@GRAD"), op.one("x@GRAD")
    axis = op.attrs.get("axis", -1)

    def run() -> None:
        d = x_grad.reserve(out.value.shape)
        weighted = np.multiply(grad.value, out.value, out=d).sum(axis=axis, keepdims=True)
        np.subtract(grad.value, weighted, out=d)
        d *= out.value

    return run


@computes("log_softmax")
def log_softmax(op: Bound) -> Step:
    x, out, axis, powers = op.one("x"), op.one("out"), op.attrs["axis"], op.scratch()

    def run() -> None:
        shape = x.value.shape
        result = out.reserve(shape)
        np.subtract(x.value, x.value.max(axis=axis, keepdims=True), out=result)
        total = np.exp(result, out=powers.reserve(shape)).sum(axis=axis, keepdims=True)
        result -= np.log(total)

    return run


@computes("log_softmax_grad")
def log_softmax_grad(op: Bound) -> Step:
    out, grad, x_grad, axis = op.one("out"), op.one("out@GRAD"), op.one("x@GRAD"), op.attrs["axis"]

    def run() -> None:
        d = np.exp(out.value, out=x_grad.reserve(out.value.shape))
        d *= grad.value.sum(axis=axis, keepdims=True)
        np.subtract(grad.value, d, out=d)

    return run
