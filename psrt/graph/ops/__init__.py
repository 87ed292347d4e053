"""Op types by family; importing this package fills the table `OPS`."""

from __future__ import annotations

from psrt.graph.ops import dense, elementwise, lookups, losses, metrics, shapes, updates
from psrt.graph.ops.table import OPS, ROWS, Call, Mismatch, OpDef, TensorType

__all__ = [
    "OPS",
    "ROWS",
    "Call",
    "Mismatch",
    "OpDef",
    "TensorType",
    "dense",
    "elementwise",
    "lookups",
    "losses",
    "metrics",
    "shapes",
    "updates",
]
