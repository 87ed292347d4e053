"""Layers that rearrange."""

from __future__ import annotations

import math
from collections.abc import Sequence

from psrt.graph.builder import Layer
from psrt.graph.ops import ROWS
from psrt.graph.program import Var


def concat(input: Sequence[Var], axis: int = 1) -> Var:
    """Join vars along `axis`, 1 or more."""
    layer = Layer("concat")
    return layer.op("concat", {"x": layer.checked("input", input)}, axis=axis)


def reshape(x: Var, shape: Sequence[int]) -> Var:
    """`shape` counts the batch: its first size is -1 (or 0, as it is); one other may be -1."""
    layer = Layer("reshape")
    layer.checked("x", x)
    sizes = [x.shape[i] if size == 0 and i < len(x.shape) else size for i, size in enumerate(shape)]
    if sizes[:1] == [ROWS] and ROWS in sizes[1:]:
        open_at = sizes.index(ROWS, 1)
        others = math.prod(size for size in sizes[1:] if size != ROWS)
        sizes[open_at] = math.prod(x.shape[1:]) // max(others, 1)
    return layer.op("reshape", {"x": x}, shape=tuple(sizes))


def flatten(x: Var) -> Var:
    """(rows, a, b, …) → (rows, a · b · …)."""
    layer = Layer("flatten")
    layer.checked("x", x)
    return layer.op("reshape", {"x": x}, shape=(ROWS, math.prod(x.shape[1:])))
