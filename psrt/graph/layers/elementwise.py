"""Layers that work element by element."""

from __future__ import annotations

from psrt.graph.builder import Layer
from psrt.graph.program import Var

ACTIVATIONS = ("relu", "sigmoid", "tanh", "softmax")


def activate(layer: Layer, x: Var, act: str | None) -> Var:
    """Append the activation a layer was asked for."""
    if act is None:
        return x
    if act not in ACTIVATIONS:
        raise layer.error(f"argument act is {act!r}, psrt knows {', '.join(ACTIVATIONS)}")
    return layer.op(act, {"x": x})


def relu(x: Var) -> Var:
    return Layer("relu").op("relu", {"x": x})


def sigmoid(x: Var) -> Var:
    return Layer("sigmoid").op("sigmoid", {"x": x})


def tanh(x: Var) -> Var:
    return Layer("tanh").op("tanh", {"x": x})


def softmax(x: Var) -> Var:
    """Over the last dimension."""
    return Layer("softmax").op("softmax", {"x": x})


def elementwise_add(x: Var, y: Var, axis: int = -1, act: str | None = None) -> Var:
    """x + y; dimensions of 1 are broadcast, y's first stands at `axis` of x (-1: ends align)."""
    return _arithmetic("elementwise_add", x, y, axis, act)


def elementwise_sub(x: Var, y: Var, axis: int = -1, act: str | None = None) -> Var:
    """x − y, broadcast as in `elementwise_add`."""
    return _arithmetic("elementwise_sub", x, y, axis, act)


def elementwise_mul(x: Var, y: Var, axis: int = -1, act: str | None = None) -> Var:
    """x · y, broadcast as in `elementwise_add`."""
    return _arithmetic("elementwise_mul", x, y, axis, act)


def elementwise_div(x: Var, y: Var, axis: int = -1, act: str | None = None) -> Var:
    """x / y, broadcast as in `elementwise_add`."""
    return _arithmetic("elementwise_div", x, y, axis, act)


def _arithmetic(kind: str, x: Var, y: Var, axis: int, act: str | None) -> Var:
    layer = Layer(kind)
    return activate(layer, layer.op(kind, {"x": x, "y": y}, axis=axis), act)
