"""From the user's program to the one that runs: the passes of a build strategy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psrt.executor.compute import ALIASING, SHAPES_ONLY
from psrt.executor.strategies import BuildStrategy
from psrt.graph import passes
from psrt.graph.passes import LATE, MemoryPlan
from psrt.graph.program import Program, Var


@dataclass(frozen=True)
class PreparedProgram:
    """`program` runs with memory shared by the plan `memory`; vars in `keep` can be fetched."""

    program: Program
    memory: MemoryPlan
    keep: frozenset[str]

    @property
    def lost(self) -> set[str]:
        """Vars that are overwritten before a fetch."""
        return (self.memory.places.keys() | self.memory.spent) - self.keep


def prepare(
    program: Program,
    build: BuildStrategy,
    keep: Sequence[str | Var] = (),
    are_short_of_work: bool = False,
) -> PreparedProgram:
    """Apply the passes; with vars to `keep`, the ones to fetch, dead code is dropped.

    If threads `are_short_of_work`, because not each has replicas of its own, products are split
    into independent ops.
    """
    names = frozenset(var if isinstance(var, str) else var.name for var in keep)
    for is_enabled, rewrite in (
        (bool(names), passes.drop_dead_code),
        (build.fuse_elewise_add_act_ops, passes.fuse_activations),
        (build.fuse_loss_gradient, passes.fuse_losses),
        (build.fuse_embedding_pool_concat, passes.fuse_embeddings),
        (build.fuse_slot_rows, passes.fuse_slot_rows),
        (build.fuse_all_optimizer_ops, passes.fuse_updates),
        (are_short_of_work, passes.split_products),
    ):
        if is_enabled:
            program = rewrite(program, names)
    memory = MemoryPlan()
    if build.memory_optimize:
        memory = passes.plan_memory(program, ALIASING, names, build.skip_grads, SHAPES_ONLY, LATE)
    return PreparedProgram(program, memory, names)
