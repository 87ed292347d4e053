"""Arithmetic element by element.

Dimensions of 1 are broadcast. `axis` says where the dimensions of `y` begin in `x`; -1 aligns the
last ones. Ragged vars meet ragged vars of the same lengths, or vars without a batch.
"""

from __future__ import annotations

from collections.abc import Sequence

from psrt.graph.builder import Layer
from psrt.graph.ops import BY_NAME
from psrt.graph.program import Var


def activate(layer: Layer, x: Var, act: str | None) -> Var:
    """Append the activation a layer was asked for."""
    if act is None:
        return x
    if not isinstance(act, str) or act not in BY_NAME:
        raise layer.error(f"argument act is {act!r}, psrt knows {', '.join(BY_NAME)}")
    return layer.op(act, {"x": x}, **BY_NAME[act])


def elementwise_add(x: Var, y: Var, axis: int = -1, act: str | None = None) -> Var:
    """x + y."""
    return _arithmetic("elementwise_add", x, y, axis, act)


def elementwise_sub(x: Var, y: Var, axis: int = -1, act: str | None = None) -> Var:
    """x − y."""
    return _arithmetic("elementwise_sub", x, y, axis, act)


def elementwise_mul(x: Var, y: Var, axis: int = -1, act: str | None = None) -> Var:
    """x · y."""
    return _arithmetic("elementwise_mul", x, y, axis, act)


def elementwise_div(x: Var, y: Var, axis: int = -1, act: str | None = None) -> Var:
    """x / y."""
    return _arithmetic("elementwise_div", x, y, axis, act)


def elementwise_max(x: Var, y: Var, axis: int = -1, act: str | None = None) -> Var:
    """The greater of x and y; where they are equal the gradient is y's."""
    return _arithmetic("elementwise_max", x, y, axis, act)


def elementwise_min(x: Var, y: Var, axis: int = -1, act: str | None = None) -> Var:
    """The lesser of x and y; where they are equal the gradient is y's."""
    return _arithmetic("elementwise_min", x, y, axis, act)


def elementwise_pow(x: Var, y: Var, axis: int = -1, act: str | None = None) -> Var:
    """x to the power of y; the gradient of y needs positive x."""
    return _arithmetic("elementwise_pow", x, y, axis, act)


def _arithmetic(kind: str, x: Var, y: Var, axis: int, act: str | None) -> Var:
    layer = Layer(kind)
    return activate(layer, layer.op(kind, {"x": x, "y": y}, axis=axis), act)


def sums(input: Sequence[Var]) -> Var:
    """The sum of vars of one type."""
    layer = Layer("sums")
    return layer.op("sum", {"x": layer.checked("input", input)})
