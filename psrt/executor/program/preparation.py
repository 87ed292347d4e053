"""From the program a user built to the one that runs: the passes a build strategy asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psrt.executor.compute import SHAPES_ONLY, SHARING
from psrt.executor.strategies import BuildStrategy
from psrt.graph import passes
from psrt.graph.passes import LATE, MemoryPlan
from psrt.graph.program import Program, Var


@dataclass(frozen=True)
class PreparedProgram:
    """`program` runs with its memory shared as `memory` says; `keep` can be fetched."""

    program: Program
    memory: MemoryPlan
    keep: frozenset[str]

    @property
    def lost(self) -> set[str]:
        """Vars that are computed, but overwritten before a fetch."""
        return (self.memory.places.keys() | self.memory.spent) - self.keep


def prepare(
    program: Program,
    build: BuildStrategy,
    keep: Sequence[str | Var] = (),
    are_short_of_work: bool = False,
) -> PreparedProgram:
    """Vars to `keep` are those to fetch; with any of them, what they do not need is left out.

    For threads that `are_short_of_work`, as not each has replicas of its own, ops are taken apart
    that need not wait for each other.
    """
    names = frozenset(var if isinstance(var, str) else var.name for var in keep)
    for is_wanted, rewrite in (
        (bool(names), passes.drop_dead_code),
        (build.fuse_elewise_add_act_ops, passes.fuse_activations),
        (build.fuse_loss_gradient, passes.fuse_losses),
        (build.fuse_embedding_pool_concat, passes.fuse_embeddings),
        (build.fuse_all_optimizer_ops, passes.fuse_updates),
        (are_short_of_work, passes.split_products),
    ):
        if is_wanted:
            program = rewrite(program, names)
    memory = MemoryPlan()
    if build.memory_optimize:
        memory = passes.plan_memory(program, SHARING, names, build.skip_grads, SHAPES_ONLY, LATE)
    return PreparedProgram(program, memory, names)
