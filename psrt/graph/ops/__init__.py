"""Op types by family; importing this package fills the table `OPS`."""

from __future__ import annotations

from psrt.graph.ops import (
    adjust,
    dense,
    elementwise,
    images,
    interactions,
    lookups,
    losses,
    math,
    metrics,
    norms,
    random,
    ranking,
    reductions,
    sampling,
    sequence,
    shapes,
    updates,
    values,
)
from psrt.graph.ops.table import OPS, ROWS, Call, Mismatch, OpDef, TensorType

__all__ = [
    "OPS",
    "ROWS",
    "Call",
    "Mismatch",
    "OpDef",
    "TensorType",
    "adjust",
    "dense",
    "elementwise",
    "images",
    "interactions",
    "lookups",
    "losses",
    "math",
    "metrics",
    "norms",
    "random",
    "ranking",
    "reductions",
    "sampling",
    "sequence",
    "shapes",
    "updates",
    "values",
]
