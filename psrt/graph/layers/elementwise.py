"""Elementwise arithmetic.

Dimensions of 1 are broadcast. `axis` is the dimension of `x` where those of `y` begin; -1 aligns
the last ones. A ragged var combines with one of equal lengths, or with a var without a batch.
"""

from __future__ import annotations

from collections.abc import Sequence

from psrt.core.hints import did_you_mean
from psrt.graph.builder import Layer
from psrt.graph.ops import BY_NAME
from psrt.graph.program import Var


def activate(layer: Layer, x: Var, act: str | None) -> Var:
    """Append the activation `act` of a layer, unless None."""
    if act is None:
        return x
    if not isinstance(act, str) or act not in BY_NAME:
        known = f"psrt has {', '.join(BY_NAME)}."
        raise layer.error(
            f"argument act is {act!r}, no activation", did_you_mean(act, BY_NAME, known)
        )
    return layer.op(act, {"x": x}, **BY_NAME[act])


def elementwise_add(x: Var, y: Var, axis: int = -1, act: str | None = None) -> Var:
    """Sum x + y, elementwise; `y` is broadcast to `x` from dimension `axis` on."""
    return _arithmetic("elementwise_add", x, y, axis, act)


def elementwise_sub(x: Var, y: Var, axis: int = -1, act: str | None = None) -> Var:
    """Difference x − y, elementwise; `y` is broadcast to `x` from dimension `axis` on."""
    return _arithmetic("elementwise_sub", x, y, axis, act)


def elementwise_mul(x: Var, y: Var, axis: int = -1, act: str | None = None) -> Var:
    """Product x · y, elementwise; `y` is broadcast to `x` from dimension `axis` on."""
    return _arithmetic("elementwise_mul", x, y, axis, act)


def elementwise_div(x: Var, y: Var, axis: int = -1, act: str | None = None) -> Var:
    """Quotient x / y of floats, elementwise; `y` is broadcast to `x` from dimension `axis` on."""
    return _arithmetic("elementwise_div", x, y, axis, act)


def elementwise_max(x: Var, y: Var, axis: int = -1, act: str | None = None) -> Var:
    """Maximum of x and y, elementwise; where they are equal the gradient is y's."""
    return _arithmetic("elementwise_max", x, y, axis, act)


def elementwise_min(x: Var, y: Var, axis: int = -1, act: str | None = None) -> Var:
    """Minimum of x and y, elementwise; where they are equal the gradient is y's."""
    return _arithmetic("elementwise_min", x, y, axis, act)


def elementwise_mod(x: Var, y: Var, axis: int = -1, act: str | None = None) -> Var:
    """Rest of x divided by y, with the sign of y, elementwise; no gradient."""
    return _arithmetic("elementwise_mod", x, y, axis, act)


def elementwise_pow(x: Var, y: Var, axis: int = -1, act: str | None = None) -> Var:
    """Power x^y of floats, elementwise; the gradient of y needs positive x."""
    return _arithmetic("elementwise_pow", x, y, axis, act)


def _arithmetic(kind: str, x: Var, y: Var, axis: int, act: str | None) -> Var:
    layer = Layer(kind)
    return activate(layer, layer.op(kind, {"x": x, "y": y}, axis=axis), act)


def sums(input: Sequence[Var]) -> Var:
    """Sum of vars of one shape and dtype, elementwise."""
    layer = Layer("sums")
    return layer.op("sum", {"x": layer.checked("input", input)})
