"""Options of a training run: replicas, passes, and the place of updates."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from psrt.executor.memory import Scope
from psrt.executor.parallel import ParallelExecutor
from psrt.executor.ports import GradSink
from psrt.executor.program import Executor
from psrt.executor.strategies import BuildStrategy, ExecutionStrategy, ReduceStrategy
from psrt.graph.program import Program, Var


@dataclasses.dataclass(frozen=True)
class RunOptions:
    """Arguments of `Executor` and `ParallelExecutor`, and `updates_here`.

    With `updates_here` a step ends with the program's own updates: in Geo and without pservers.
    `async_mode` of a build strategy has no effect: replicas of one trainer meet at every step,
    whatever the mode between trainers.
    """

    replicas: int = 1
    build: BuildStrategy | None = None
    execution: ExecutionStrategy | None = None
    keep: Sequence[str | Var] = ()
    first_example: int = 0
    updates_here: bool = False

    def executor(
        self, program: Program, scope: Scope, sink: GradSink | None
    ) -> Executor | ParallelExecutor:
        """Make the executor of a run; the caller closes a parallel one."""
        build = dataclasses.replace(self.build or BuildStrategy(), async_mode=False)
        if self.replicas == 1 and self.execution is None:
            return Executor(
                program,
                scope,
                sink=sink,
                build_strategy=build,
                keep=self.keep,
                first_example=self.first_example,
            )
        return ParallelExecutor(
            program,
            scope,
            self.replicas,
            build,
            self.execution,
            sink=sink,
            keep=self.keep,
            first_example=self.first_example,
        )


def build_strategy() -> BuildStrategy:
    """Return every pass, for a run whose fetches are known; replicas share their parameters."""
    return BuildStrategy(
        reduce_strategy=ReduceStrategy.Reduce,
        memory_optimize=True,
        fuse_elewise_add_act_ops=True,
        fuse_all_optimizer_ops=True,
        fuse_embedding_pool_concat=True,
        fuse_loss_gradient=True,
    )
