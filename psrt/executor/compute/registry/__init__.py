"""registry: files in reading order.

noted  Steps that are noted on tapes, and what they noted last
table  The table of computations: op type → how an op of that type becomes a step
apart  Values of examples that lie apart: gradients are often some columns of wider ones
"""

from __future__ import annotations

from psrt.executor.compute.registry.apart import flat_groups, flat_rows, lie_apart, regrouped
from psrt.executor.compute.registry.noted import CachedCommands, Step, StepSequence
from psrt.executor.compute.registry.table import (
    COMPUTE,
    SHAPES_ONLY,
    SHARING,
    Bound,
    Compute,
    computes,
)

__all__ = [
    "COMPUTE",
    "SHAPES_ONLY",
    "SHARING",
    "Bound",
    "CachedCommands",
    "Compute",
    "Step",
    "StepSequence",
    "computes",
    "flat_groups",
    "flat_rows",
    "lie_apart",
    "regrouped",
]
