"""Passes: rewriting a program into one that computes the same with less.

In reading order: uses (who reads and writes what) · dead_code · activations · losses · embeddings ·
updates · products · memory (which vars may share memory; a plan, not a rewrite).

A pass takes a program and the names of vars to `keep`, and returns a new program; it touches
neither. Each says in its docstring whether results stay the same bits or the same within rounding.
"""

from __future__ import annotations

from psrt.graph.passes.activations import fuse_activations
from psrt.graph.passes.dead_code import drop_dead_code
from psrt.graph.passes.embeddings import fuse_embeddings
from psrt.graph.passes.losses import fuse_losses
from psrt.graph.passes.memory import MemoryPlan, plan_memory
from psrt.graph.passes.products import LATE, split_products
from psrt.graph.passes.updates import fuse_updates

__all__ = [
    "LATE",
    "MemoryPlan",
    "drop_dead_code",
    "fuse_activations",
    "fuse_embeddings",
    "fuse_losses",
    "fuse_updates",
    "plan_memory",
    "split_products",
]
