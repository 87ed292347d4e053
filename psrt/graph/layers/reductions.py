"""Layers that reduce dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from psrt.graph.arguments import are_several
from psrt.graph.builder import Layer
from psrt.graph.layers.shapes import from_front
from psrt.graph.program import Var


def mean(x: Var) -> Var:
    """Mean of all elements: any shape → a scalar of shape ()."""
    return Layer("mean").op("mean", {"x": x})


def reduce_sum(x: Var, dim: int | Sequence[int] | None = None, keep_dim: bool = False) -> Var:
    """Sum over dimension(s) `dim`; all of them by default, which gives shape ()."""
    return _reduction("reduce_sum", x, dim, keep_dim)


def reduce_mean(x: Var, dim: int | Sequence[int] | None = None, keep_dim: bool = False) -> Var:
    """Mean over dimension(s) `dim`, all of them by default."""
    return _reduction("reduce_mean", x, dim, keep_dim)


def reduce_max(x: Var, dim: int | Sequence[int] | None = None, keep_dim: bool = False) -> Var:
    """Maximum over dimension(s) `dim`; every element equal to it gets its gradient."""
    return _reduction("reduce_max", x, dim, keep_dim)


def reduce_min(x: Var, dim: int | Sequence[int] | None = None, keep_dim: bool = False) -> Var:
    """Minimum over dimension(s) `dim`; every element equal to it gets its gradient."""
    return _reduction("reduce_min", x, dim, keep_dim)


def reduce_prod(x: Var, dim: int | Sequence[int] | None = None, keep_dim: bool = False) -> Var:
    """Product over dimension(s) `dim`, all of them by default."""
    return _reduction("reduce_prod", x, dim, keep_dim)


def _reduction(kind: str, x: Var, dim: int | Sequence[int] | None, keep_dim: bool) -> Var:
    layer = Layer(kind)
    layer.checked("x", x)
    ndim = len(x.shape)
    listed = dim if are_several(dim) else (dim,)
    given = range(ndim) if dim is None else layer.wholes("dim", listed)
    axes = tuple(sorted({axis + ndim if axis < 0 else axis for axis in given}))
    return layer.op(kind, {"x": x}, axes=axes, keep_dims=keep_dim)


def cumsum(x: Var, axis: int = -1, exclusive: bool = False, reverse: bool = False) -> Var:
    """Running sums along `axis`, which is not that of the examples.

    `exclusive` omits an element from its own sum, `reverse` begins at the end.
    """
    layer = Layer("cumsum")
    at = from_front(layer, layer.checked("x", x), axis)
    return layer.op("cumsum", {"x": x}, axis=at, exclusive=exclusive, reverse=reverse)


def argmax(x: Var, axis: int = -1) -> Var:
    """Index int64 of the (first) maximum along `axis`, which is removed. No gradient."""
    layer = Layer("argmax")
    return layer.op("argmax", {"x": x}, axis=from_front(layer, layer.checked("x", x), axis))


def argmin(x: Var, axis: int = -1) -> Var:
    """Index int64 of the (first) minimum along `axis`, which is removed. No gradient."""
    layer = Layer("argmin")
    return layer.op("argmin", {"x": x}, axis=from_front(layer, layer.checked("x", x), axis))


def topk(input: Var, k: int) -> tuple[Var, Var]:
    """The `k` largest of the last dimension, and their indices: (…, n) → (…, k), int64 (…, k).

    Values fall; of equal ones the first comes first, and NaN is the largest, as for `argmax`.
    Gradients flow through the values.
    """
    found = Layer("topk").ops("topk", {"input": input}, k=k)
    return found["out"], found["indices"]


def l2_normalize(x: Var, axis: int = -1, epsilon: float = 1e-12) -> Var:
    """L2 normalisation x / √(Σ x² + `epsilon`), summed along `axis`."""
    layer = Layer("l2_normalize")
    at = from_front(layer, layer.checked("x", x), axis)
    return layer.op("l2_normalize", {"x": x}, axis=at, epsilon=epsilon)
