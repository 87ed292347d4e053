"""Layers that make values of a kind: other dtypes, constants, one-hot rows, rows by index."""

from __future__ import annotations

from collections.abc import Sequence

from psrt.graph.builder import Layer
from psrt.graph.ops import DTYPES, ROWS
from psrt.graph.program import Var


def cast(x: Var, dtype: str) -> Var:
    """Convert `x` to float32, float64 or int64, which cuts fractions off and stops gradients."""
    return Layer("cast").op("cast", {"x": x}, dtype=dtype)


def assign(input: Var) -> Var:
    """Copy of `input` under another name."""
    return Layer("assign").op("assign", {"x": input})


def zeros_like(x: Var) -> Var:
    """Zeros of the shape and dtype of `x`."""
    return Layer("zeros_like").op("zeros_like", {"x": x})


def ones_like(x: Var) -> Var:
    """Ones of the shape and dtype of `x`."""
    return Layer("ones_like").op("ones_like", {"x": x})


def fill_constant(shape: Sequence[int], dtype: str, value: float) -> Var:
    """Constant `value` in `shape`, which has no batch; float32, float64 or int64."""
    layer = Layer("fill_constant")
    return layer.op(
        "fill_constant", {}, shape=layer.wholes("shape", shape), dtype=dtype, value=value
    )


def constant(values: Sequence[float], shape: Sequence[int], dtype: str = "float32") -> Var:
    """Constant of these values, the last index of `shape` fastest; float32, float64 or int64."""
    layer = Layer("constant")
    return layer.op(
        "constant", {}, shape=layer.wholes("shape", shape), dtype=dtype, values=tuple(values)
    )


def fill_constant_batch_size_like(
    input: Var, shape: Sequence[int], dtype: str, value: float
) -> Var:
    """Constant `value` in `shape`, whose first size, -1, is that of `input`."""
    layer = Layer("fill_constant_batch_size_like")
    full = (ROWS, *layer.wholes("shape", shape)[1:])
    return layer.op(layer.kind, {"input": input}, shape=full, dtype=dtype, value=value)


def one_hot(input: Var, depth: int) -> Var:
    """One-hot float32 rows of ids 0 to depth − 1: int64 (…, 1) → (…, depth). No gradient."""
    return Layer("one_hot").op("one_hot", {"input": input}, depth=depth)


def gather(input: Var, index: Var) -> Var:
    """Rows by index of a var without a batch: (n, …) and int64 (rows,) or (rows, 1) → (rows, …)."""
    return Layer("gather").op("gather", {"input": input, "index": index})


def gather_nd(input: Var, index: Var) -> Var:
    """Parts by positions in the first k dimensions of `input`: int64 (…, k) → (…, rest).

    Positions in dimension 0 of a batch count its examples, those of a replica its share.
    """
    return Layer("gather_nd").op("gather_nd", {"input": input, "index": index})


def is_empty(x: Var) -> Var:
    """True if `x` has no elements in this batch, bool (1,)."""
    return Layer("is_empty").op("is_empty", {"x": x})


def shape(input: Var) -> Var:
    """Sizes of `input` in this batch, int64 (dimensions,)."""
    return Layer("shape").op("shape_of", {"input": input})


def print_value(
    x: Var,
    message: str = "",
    first_n: int = -1,
    summarize: int = 20,
    title: str = "",
    parts: Sequence[str] = ("name", "message", "lod", "shape", "dtype"),
    phase: str = "both",
) -> Var:
    """Return `x`; a step prints it, and a backward its gradient, on standard output.

    Shown are the first `summarize` elements, or all for -1, in the first `first_n` steps, or all
    for -1. `title` is shown for the name; `phase` is forward, backward or both. What is computed
    from the result has the gradient, not what is computed from `x`.
    """
    layer = Layer("print_value")
    return layer.op(
        "print_value",
        {"x": x},
        title=title,
        message=message,
        parts=tuple(part for part in parts if part != "message" or message),
        summarize=layer.whole("summarize", summarize, least=-1),
        first_n=layer.whole("first_n", first_n, least=-1),
        phase=phase,
    )


def create_state(
    shape: Sequence[int], value: float = 0.0, dtype: str = "float32", name: str | None = None
) -> Var:
    """Var that keeps its value from step to step, `value` at first; `set_state` changes it.

    Each trainer has its own; no pserver holds it.
    """
    layer = Layer("state")
    sizes = layer.wholes("shape", shape)
    if min(sizes, default=1) < 1 or dtype not in DTYPES:
        raise layer.error(f"argument shape {sizes} or dtype {dtype!r} is not one of a state")
    initial = float(layer.number("value", value))
    return layer.var(name or layer.name, sizes, dtype, "state", initial=initial)


def set_state(state: Var, x: Var) -> Var:
    """Copy `x` into a var of `create_state` of its dtype and number of elements; returns it."""
    return Layer("set_state").op("set_state", {"x": x, "state": state})
