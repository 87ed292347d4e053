"""Losses by example, and reductions to scalars."""

from __future__ import annotations

from collections.abc import Sequence

from psrt.graph.builder import Layer
from psrt.graph.program import Var


def sigmoid_cross_entropy_with_logits(x: Var, label: Var) -> Var:
    """−label · log σ(x) − (1 − label) · log σ(−x), elementwise; labels are floats from 0 to 1."""
    layer = Layer("sigmoid_cross_entropy_with_logits")
    return layer.op("sigmoid_cross_entropy_with_logits", {"x": x, "label": label})


def cross_entropy(input: Var, label: Var) -> Var:
    """−log input[label]: probabilities (rows, classes), int64 labels (rows, 1) → (rows, 1)."""
    return Layer("cross_entropy").op("cross_entropy", {"input": input, "label": label})


def softmax_with_cross_entropy(logits: Var, label: Var) -> Var:
    """−log softmax(logits)[label]: (rows, classes), int64 labels (rows, 1) → (rows, 1)."""
    layer = Layer("softmax_with_cross_entropy")
    return layer.op("softmax_with_cross_entropy", {"logits": logits, "label": label})


def square_error_cost(input: Var, label: Var) -> Var:
    """(input − label)², elementwise."""
    return Layer("square_error_cost").op("square_error_cost", {"input": input, "label": label})


def mean(x: Var) -> Var:
    """The mean of all elements, a scalar of shape ()."""
    return Layer("mean").op("mean", {"x": x})


def reduce_sum(x: Var, dim: int | Sequence[int] | None = None, keep_dim: bool = False) -> Var:
    """The sum over dimension(s) `dim`; over all of them it is a scalar of shape ()."""
    layer = Layer("reduce_sum")
    layer.checked("x", x)
    ndim = len(x.shape)
    asked = range(ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    axes = tuple(sorted({axis + ndim if axis < 0 else axis for axis in asked}))
    return layer.op("reduce_sum", {"x": x}, axes=axes, keep_dims=keep_dim)
