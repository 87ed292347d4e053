"""Functions of one element, and softmax; the formulas stand in `psrt.graph.ops.math`."""

from __future__ import annotations

import math

from psrt.trainer.models.onnx_nodes.table import Drawing, exports

_RENAMED = {
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "softplus": "Softplus",
    "softsign": "Softsign",
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "abs": "Abs",
    "reciprocal": "Reciprocal",
    "sin": "Sin",
    "cos": "Cos",
    "sign": "Sign",
    "floor": "Floor",
    "ceil": "Ceil",
    "round": "Round",
    "assign": "Identity",
}


@exports(*_RENAMED)
def renamed(d: Drawing) -> None:
    d.node(_RENAMED[d.op.type], (d.one("x"),), d.out())


@exports("relu6")
def relu6(d: Drawing) -> None:
    limits = d.number(0), d.number(d.attrs["threshold"])
    d.node("Clip", (d.one("x"), *limits), d.out())


@exports("leaky_relu", "elu")
def sloped(d: Drawing) -> None:
    type = {"leaky_relu": "LeakyRelu", "elu": "Elu"}[d.op.type]
    d.node(type, (d.one("x"),), d.out(), alpha=float(d.attrs["alpha"]))


@exports("logsigmoid")
def logsigmoid(d: Drawing) -> None:
    positive = d.node("Softplus", (d.node("Neg", (d.one("x"),)),))
    d.node("Neg", (positive,), d.out())


@exports("hard_sigmoid")
def hard_sigmoid(d: Drawing) -> None:
    slope, offset = float(d.attrs["slope"]), float(d.attrs["offset"])
    d.node("HardSigmoid", (d.one("x"),), d.out(), alpha=slope, beta=offset)


@exports("gelu")
def gelu(d: Drawing) -> None:
    _half_of_x_times_one_plus(d, d.node("Erf", (_times(d, d.one("x"), 1 / math.sqrt(2)),)))


@exports("gelu_tanh")
def gelu_tanh(d: Drawing) -> None:
    cube = d.node("Pow", (d.one("x"), d.number(3)))
    inner = d.node("Add", (d.one("x"), _times(d, cube, 0.044715)))
    _half_of_x_times_one_plus(d, d.node("Tanh", (_times(d, inner, math.sqrt(2 / math.pi)),)))


def _half_of_x_times_one_plus(d: Drawing, inner: str) -> None:
    d.node("Mul", (_times(d, d.one("x"), 0.5), d.node("Add", (inner, d.number(1)))), d.out())


def _times(d: Drawing, x: str, factor: float) -> str:
    return d.node("Mul", (x, d.number(factor)))


@exports("swish")
def swish(d: Drawing) -> None:
    gate = d.node("Sigmoid", (_times(d, d.one("x"), d.attrs["beta"]),))
    d.node("Mul", (d.one("x"), gate), d.out())


@exports("rsqrt")
def rsqrt(d: Drawing) -> None:
    d.node("Reciprocal", (d.node("Sqrt", (d.one("x"),)),), d.out())


@exports("square")
def square(d: Drawing) -> None:
    d.node("Mul", (d.one("x"), d.one("x")), d.out())


@exports("pow")
def power(d: Drawing) -> None:
    d.node("Pow", (d.one("x"), d.number(d.attrs["factor"])), d.out())


@exports("clip")
def clip(d: Drawing) -> None:
    limits = (d.number(d.attrs[name], d.dtype("x")) for name in ("min", "max"))
    d.node("Clip", (d.one("x"), *limits), d.out())


@exports("scale")
def scale(d: Drawing) -> None:
    factor, bias = (d.number(d.attrs[name], d.dtype("x")) for name in ("scale", "bias"))
    d.node("Add", (d.node("Mul", (d.one("x"), factor)), bias), d.out())


@exports("softmax", "log_softmax")
def softmax(d: Drawing) -> None:
    type = {"softmax": "Softmax", "log_softmax": "LogSoftmax"}[d.op.type]
    d.node(type, (d.one("x"),), d.out(), axis=d.attrs.get("axis", -1))
