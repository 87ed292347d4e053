"""Exporters by family of ops; importing this package fills the table `EXPORTS`."""

from __future__ import annotations

from psrt.trainer.onnx_nodes import (
    dense,
    elementwise,
    images,
    interactions,
    lookups,
    math,
    reductions,
    shapes,
    values,
)
from psrt.trainer.onnx_nodes.table import EXPORTS, OPSET, Drawing, Graph, Node, refusal

__all__ = [
    "EXPORTS",
    "OPSET",
    "Drawing",
    "Graph",
    "Node",
    "dense",
    "elementwise",
    "images",
    "interactions",
    "lookups",
    "math",
    "reductions",
    "refusal",
    "shapes",
    "values",
]
