"""Options of a training run: replicas, passes, and the place of updates."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from psrt.communicator.base import Communicator
from psrt.executor.memory import RowBatch, Scope
from psrt.executor.parallel import ParallelExecutor
from psrt.executor.ports import GradSink
from psrt.executor.program import Executor, Feed, Merged
from psrt.executor.strategies import BuildStrategy, ExecutionStrategy, ReduceStrategy
from psrt.graph.declaration import computed_rates
from psrt.graph.program import Program, Role, Var
from psrt.trainer.training.numerics import CONTINUE, Numerics


class ComputedRates:
    """Learning rates that a program computes, in its `vars`: fetched, and sent with gradients."""

    def __init__(self, program: Program) -> None:
        self._rates = computed_rates(program)
        self.vars = list(dict.fromkeys(rate.var for rate in self._rates.values()))

    def of(self, values: Sequence[Any]) -> dict[str, float]:
        """Return the rates by parameter, from values of `vars`, or lists of those of replicas."""
        numbers = {
            var: float(np.ravel(value)[0]) for var, value in zip(self.vars, values, strict=True)
        }
        return {name: rate.scale * numbers[rate.var] for name, rate in self._rates.items()}

    def sent(self, communicator: Communicator | None, found: list[Any], count: int) -> list[Any]:
        """Let pushes carry the rates behind the first `count` fetches; returns these."""
        if self.vars and found and communicator is not None:
            communicator.use_rates(self.of(found[count:]))
        return found[:count]


@dataclasses.dataclass(frozen=True)
class RunOptions:
    """Arguments of `Executor` and `ParallelExecutor`, and `updates_here`.

    With `updates_here` a step ends with the program's own updates: in Geo and without pservers.
    `numerics` is what follows numbers that are not finite.
    `async_mode` of a build strategy has no effect: replicas of one trainer meet at every step,
    whatever the mode between trainers.
    """

    replicas: int = 1
    build: BuildStrategy | None = None
    execution: ExecutionStrategy | None = None
    keep: Sequence[str | Var] = ()
    first_example: int = 0
    updates_here: bool = False
    numerics: Numerics = CONTINUE

    def executor(
        self, program: Program, scope: Scope, sink: GradSink | None
    ) -> Executor | ParallelExecutor:
        """Make the executor of a run; the caller closes a parallel one."""
        build = dataclasses.replace(self.build or BuildStrategy(), async_mode=False)
        keep = [*self.keep, *ComputedRates(program).vars]
        if self.numerics.skips:  # no update before every gradient was checked
            build = dataclasses.replace(build, enable_backward_optimizer_op_deps=True)
        if self.replicas == 1 and self.execution is None:
            return Executor(
                program,
                scope,
                sink=sink,
                build_strategy=build,
                keep=keep,
                first_example=self.first_example,
                checks=self.numerics.checks,
            )
        return ParallelExecutor(
            program,
            scope,
            self.replicas,
            build,
            self.execution,
            sink=sink,
            keep=keep,
            first_example=self.first_example,
            checks=self.numerics.checks,
        )


def build_strategy() -> BuildStrategy:
    """Return every pass, for a run whose fetches are known; replicas share their parameters."""
    return BuildStrategy(
        reduce_strategy=ReduceStrategy.Reduce,
        memory_optimize=True,
        fuse_elewise_add_act_ops=True,
        fuse_all_optimizer_ops=True,
        fuse_embedding_pool_concat=True,
        fuse_slot_rows=True,
        fuse_loss_gradient=True,
    )


def computed(
    executor: Executor | ParallelExecutor,
    feed: Feed,
    fetch: Sequence[str],
    rows: Mapping[str, RowBatch],
    roles: Sequence[Role],
    merged: Merged,
) -> list[Any]:
    """Run a batch; a fetched value is one for all replicas if `merged`, else a list of one each."""
    if isinstance(executor, ParallelExecutor):
        return executor.run(feed, fetch, rows, roles, merged)
    found = executor.run(feed, fetch, rows, roles)
    return list(found) if merged else [[value] for value in found]
