"""Passes: rewriting a program into one with fewer or cheaper ops.

In reading order: uses (writer and readers of vars) · dead_code · activations · losses · embeddings
· updates · products · memory (vars that may share memory; a plan, not a rewrite).

A pass takes a program and the names of vars to `keep`, and returns a new program; it changes
neither. Each docstring states whether results are bit-identical or equal within rounding.
"""

from psrt.graph.passes.activations import fuse_activations
from psrt.graph.passes.dead_code import drop_dead_code
from psrt.graph.passes.embeddings import fuse_embeddings, fuse_slot_rows
from psrt.graph.passes.losses import fuse_losses
from psrt.graph.passes.memory import MemoryPlan, plan_memory
from psrt.graph.passes.products import LATE, split_products
from psrt.graph.passes.updates import fuse_updates

__all__ = ["LATE", "MemoryPlan", "drop_dead_code", "plan_memory", "split_products"]
__all__ += ["fuse_activations", "fuse_embeddings", "fuse_losses", "fuse_slot_rows"]
__all__ += ["fuse_updates"]
