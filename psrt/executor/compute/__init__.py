"""Computations by family, in the families of `psrt.graph.ops`; importing fills `COMPUTE`."""

from __future__ import annotations

from psrt.executor.compute import dense, elementwise, lookups, losses, metrics, pooling, shapes
from psrt.executor.compute.table import COMPUTE, Bound, Compute, Step, computes

__all__ = [
    "COMPUTE",
    "Bound",
    "Compute",
    "Step",
    "computes",
    "dense",
    "elementwise",
    "lookups",
    "losses",
    "metrics",
    "pooling",
    "shapes",
]
