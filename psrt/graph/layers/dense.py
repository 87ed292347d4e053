"""Fully connected layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from psrt.graph.builder import Layer, Param
from psrt.graph.initializer import Constant, Xavier
from psrt.graph.layers.elementwise import activate
from psrt.graph.ops import ROWS
from psrt.graph.ops.dense import FUSED_ACTIVATIONS
from psrt.graph.program import Var


def fc(
    input: Var | Sequence[Var],
    size: int,
    act: str | None = None,
    param: Param | str | None = None,
    bias: Param | str | Literal[False] | None = None,
) -> Var:
    """activation(Σ input · weight + bias): (rows, …) → (rows, size).

    Each input has a weight of its own (Xavier uniform by default); inputs of more than two
    dimensions are flattened. `bias=False` leaves the bias out, which otherwise starts at 0.
    """
    layer = Layer("fc")
    listed = layer.checked("input", input)
    if size < 1:
        raise layer.error(f"argument size is {size}, a layer has one unit or more")
    if len(listed) > 1 and (isinstance(param, str) or (param and param.name)):
        raise layer.error(
            "argument param names one weight, but each input has its own",
            "Join the inputs with layers.concat.",
        )
    xs = [_two_dimensional(layer, x) for x in listed]
    ws = [layer.parameter(f"w_{i}", (x.shape[1], size), param, Xavier()) for i, x in enumerate(xs)]
    biases = [] if bias is False else [layer.parameter("b_0", (size,), bias, Constant(0.0))]
    fused = act if act in FUSED_ACTIVATIONS else ""
    out = layer.op("fc", {"x": xs, "w": ws, "bias": biases}, activation=fused or "")
    return out if fused else activate(layer, out, act)


def _two_dimensional(layer: Layer, x: Var) -> Var:
    if x.ragged or len(x.shape) < 2:
        raise layer.error(
            f"argument input is {x.name} of type {x.type}, which is not (batch, features)",
            "Pool ragged inputs with layers.sequence_pool first." if x.ragged else "",
        )
    if len(x.shape) == 2:
        return x
    return layer.op("reshape", {"x": x}, shape=(ROWS, math.prod(x.shape[1:])))
