"""Elementwise functions, and softmax: activations first.

The tables list the functions with their attributes and the defaults of `act="elu"` in a layer. The
derivatives are in `psrt.graph.gradients`.
"""

from __future__ import annotations

from typing import Any

from psrt.graph.ops.reductions import need_inner
from psrt.graph.ops.table import OpCall, Types, define

ACTIVATIONS: dict[str, dict[str, Any]] = {
    "relu": {},  # max(x, 0)
    "relu6": {"threshold": 6.0},  # min(max(x, 0), threshold)
    "leaky_relu": {"alpha": 0.02},  # x where x > 0, else alpha · x
    "elu": {"alpha": 1.0},  # x where x > 0, else alpha · (eˣ − 1)
    "sigmoid": {},  # 1 / (1 + e⁻ˣ)
    "logsigmoid": {},  # −ln(1 + e⁻ˣ)
    "hard_sigmoid": {"slope": 0.2, "offset": 0.5},  # slope · x + offset, cut to [0, 1]
    "tanh": {},
    "gelu": {},  # x Φ(x), Φ the normal distribution: x/2 · (1 + erf(x / √2))
    "gelu_tanh": {},  # x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))
    "softplus": {},  # ln(1 + eˣ)
    "softsign": {},  # x / (1 + |x|)
    "swish": {"beta": 1.0},  # x · sigmoid(beta · x)
}
FUNCTIONS: dict[str, dict[str, Any]] = {
    "exp": {},
    "log": {},
    "sqrt": {},
    "rsqrt": {},  # 1 / √x
    "square": {},
    "abs": {},
    "reciprocal": {},
    "sin": {},
    "cos": {},
    "sign": {},  # −1, 0 or 1
    "floor": {},
    "ceil": {},
    "round": {},  # halves to even
    "pow": {"factor": 1.0},  # x to the power of factor
}
NORMALIZING: dict[str, dict[str, Any]] = {"softmax": {"axis": -1}, "log_softmax": {"axis": -1}}
BY_NAME = ACTIVATIONS | NORMALIZING | FUNCTIONS
"""Names `act` of a layer may have, with attributes."""


def of_floats(call: OpCall) -> Types:
    return {"out": call.need_float("x")}


for _type in ACTIVATIONS | FUNCTIONS:
    define(_type, inputs="x", ragged="x")(of_floats)


@define("clip", inputs="x", ragged="x")
def clip(call: OpCall) -> Types:
    """attrs: min, max. Ids may be clipped too."""
    x, low, high = call.one("x"), call.attrs["min"], call.attrs["max"]
    call.need(low <= high, f"argument min {low} is above argument max {high}")
    _need_whole(call, "min", "max")
    return {"out": x}


@define("scale", inputs="x", ragged="x")
def scale(call: OpCall) -> Types:
    """attrs: scale, bias. out = scale · x + bias; ids may be moved too."""
    _need_whole(call, "scale", "bias")
    return {"out": call.one("x")}


def _need_whole(call: OpCall, *names: str) -> None:
    """Require whole numbers for integer x."""
    x = call.one("x")
    for name in names:
        fits = x.is_float or float(call.attrs[name]).is_integer()
        call.need(fits, f"argument {name} {call.attrs[name]} does not fit argument x, {x}")


def normalizing(call: OpCall) -> Types:
    """attrs: axis, not that of the examples, -1 for the last."""
    x, axis = call.need_float("x"), call.attrs.get("axis", -1)
    call.need(bool(x.shape), f"argument x has no dimension to normalize over: {x}")
    need_inner(call, x, "axis", axis + len(x.shape) if axis < 0 else axis)
    return {"out": x}


for _type in NORMALIZING:
    define(_type, inputs="x", ragged="x")(normalizing)
