"""Products: fully connected layers, matrix products, dot products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from psrt.core.types import Shape
from psrt.graph.builder import Layer
from psrt.graph.initializer import Constant, Xavier
from psrt.graph.layers.elementwise import activate
from psrt.graph.ops import FUSED_ACTIVATIONS
from psrt.graph.param import Param
from psrt.graph.program import Var


def fc(
    input: Var | Sequence[Var],
    size: int,
    act: str | None = None,
    param: Param | str | None = None,
    bias: Param | str | Literal[False] | None = None,
    num_flatten_dims: int = 1,
) -> Var:
    """Fully connected layer, activation(Σ input · weight + bias): (rows, …) → (rows, size).

    Each input has its own weight (Xavier uniform by default). The first `num_flatten_dims`
    dimensions are kept, the others are flattened. `bias=False` omits the bias, which otherwise
    starts at 0. Ragged inputs give ragged rows.
    """
    layer = Layer("fc")
    listed = layer.checked("input", input)
    size = layer.whole("size", size)
    if size < 1:
        raise layer.error(f"argument size is {size}, a layer has one unit or more")
    if len(listed) > 1 and (isinstance(param, str) or (isinstance(param, Param) and param.name)):
        raise layer.error(
            "argument param names one weight, but each input has its own",
            "Join the inputs with layers.concat.",
        )
    xs = [_flattened(layer, x, num_flatten_dims) for x in listed]
    ws = [layer.parameter(f"w_{i}", (x.shape[-1], size), param, Xavier()) for i, x in enumerate(xs)]
    biases = [] if bias is False else [layer.parameter("b_0", (size,), bias, Constant(0.0))]
    fused = act if act in FUSED_ACTIVATIONS else ""
    out = layer.op("fc", {"x": xs, "w": ws, "bias": biases}, activation=fused or "")
    return out if fused else activate(layer, out, act)


def _flattened(layer: Layer, x: Var, kept: int) -> Var:
    """`x` with one dimension behind the first `kept`."""
    if len(x.shape) < 2:
        raise layer.error(f"argument input is {x.name} of type {x.type}, which is not (rows, size)")
    kept = layer.whole("num_flatten_dims", kept)
    if not 1 <= kept < len(x.shape):
        raise layer.error(f"argument num_flatten_dims {kept} does not fit input of type {x.type}")
    if len(x.shape) == kept + 1:
        return x
    return layer.op("reshape", {"x": x}, shape=(*x.shape[:kept], math.prod(x.shape[kept:])))


def matmul(
    x: Var, y: Var, transpose_x: bool = False, transpose_y: bool = False, alpha: float = 1.0
) -> Var:
    """Matrix product `alpha` · x · y over the last two dimensions; those before are broadcast.

    (rows, d) · (d, k) → (rows, k); (rows, n, d) · (rows, d, m) → (rows, n, m). With `transpose_y`,
    (rows, d) · (rows, d) → (rows, rows): each example against each. Ragged `x` stays ragged; `y`
    then has no batch and is not ragged.
    """
    layer = Layer("matmul")
    return layer.op(
        "matmul",
        {"x": x, "y": y},
        transpose_x=transpose_x,
        transpose_y=transpose_y,
        alpha=float(layer.number("alpha", alpha)),
    )


def mul(x: Var, y: Var, x_num_col_dims: int = 1, y_num_col_dims: int = 1) -> Var:
    """Product of two matrices made by flattening: (*r, *k) · (*k, *c) → (*r, *c).

    The first `x_num_col_dims` (or `y_num_col_dims`) dimensions are the rows of a matrix, the others
    its columns.
    """
    layer = Layer("mul")
    layer.checked("x", x)
    layer.checked("y", y)
    x_num_col_dims = layer.whole("x_num_col_dims", x_num_col_dims)
    y_num_col_dims = layer.whole("y_num_col_dims", y_num_col_dims)
    for name, var, count in (("x", x, x_num_col_dims), ("y", y, y_num_col_dims)):
        if not 0 < count < len(var.shape):
            raise layer.error(f"argument {name}_num_col_dims {count} does not fit {var.type}")
    rows, columns = x.shape[:x_num_col_dims], y.shape[y_num_col_dims:]
    a = _reshaped(layer, x, (*rows, math.prod(x.shape[x_num_col_dims:])))
    b = _reshaped(layer, y, (math.prod(y.shape[:y_num_col_dims]), math.prod(columns)))
    out = layer.op("matmul", {"x": a, "y": b}, transpose_x=False, transpose_y=False, alpha=1.0)
    return _reshaped(layer, out, (*rows, *columns))


def _reshaped(layer: Layer, x: Var, shape: Shape) -> Var:
    return x if x.shape == shape else layer.op("reshape", {"x": x}, shape=shape)


def dot(x: Var, y: Var) -> Var:
    """Dot product Σ x · y of rows of one size: (rows, d), (rows, d) → (rows, 1)."""
    return Layer("dot").op("dot", {"x": x, "y": y})
