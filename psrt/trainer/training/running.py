"""A trainer's program at work over a scope its user may look into, by one executor or by replicas.

What a pserver updates arrives in the scope from outside; what nobody updates begins at its initial
value here, unless the scope has it already. In Geo the program's own updates run as well.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from psrt.communicator.base import Gradients
from psrt.core.specs import Geo
from psrt.executor.memory import RowBatch, Scope, initial_values
from psrt.executor.parallel import PASSES, ParallelExecutor
from psrt.executor.ports import OnGradient
from psrt.executor.program import Executor
from psrt.executor.strategies import BuildStrategy, ExecutionStrategy
from psrt.graph.program import Program, Var
from psrt.partition.transpiler import TrainerProgram
from psrt.trainer.inputs import Feed
from psrt.trainer.training.local_parameters import LocalDenseParameters, LocalUpdates


@dataclasses.dataclass(frozen=True)
class RunOptions:
    """How steps are run; the fields are arguments of `Executor` and `ParallelExecutor`.

    `async_mode` of a build strategy counts for nothing here: replicas of one trainer meet at every
    step, whatever the mode between trainers.
    """

    replicas: int = 1
    build: BuildStrategy | None = None
    execution: ExecutionStrategy | None = None
    keep: Sequence[str | Var] = ()
    first_example: int = 0

    def executor(self, program: Program, scope: Scope) -> Executor | ParallelExecutor:
        build = dataclasses.replace(self.build or BuildStrategy(), async_mode=False)
        shared: Any = {"keep": self.keep, "first_example": self.first_example}
        if self.replicas == 1 and self.execution is None:
            return Executor(program, scope, build_strategy=build, **shared)
        return ParallelExecutor(program, scope, self.replicas, build, self.execution, **shared)


class ProgramRunner:
    """The part of one trainer over `scope`.

    With `merged` off, a fetched var is a list with the value of each replica.
    """

    def __init__(self, part: TrainerProgram, scope: Scope, how: RunOptions) -> None:
        self.scope, self._program = scope, part.program
        self.executor = how.executor(part.program, scope)
        self.merged = True
        is_geo = isinstance(part.mode, Geo)
        self._updates = LocalUpdates(self.executor, part.program) if is_geo else None
        self.own = LocalDenseParameters(part.program, scope, self.executor) if is_geo else None
        self._roles = LocalUpdates.ROLES if is_geo else PASSES
        _fill_what_nobody_trains(scope, part.program)

    @property
    def on_gradient(self) -> OnGradient | None:
        return self.executor.on_gradient

    @on_gradient.setter
    def on_gradient(self, on_gradient: OnGradient | None) -> None:
        """In Geo nobody is told: gradients do not leave."""
        self.executor.on_gradient = on_gradient if self._updates is None else None

    def run(self, feed: Feed, fetch: Sequence[str], rows: Mapping[str, RowBatch]) -> Sequence[Any]:
        executor = self.executor
        if isinstance(executor, ParallelExecutor):
            return executor.run(feed, fetch, rows, self._roles, self.merged)
        found = executor.run(feed, fetch, rows, self._roles)
        return found if self.merged else [[value] for value in found]

    def gradients(self) -> Gradients:
        return (self._updates or self.executor).gradients()

    def newest(self, fetch: Sequence[str], fetched: Sequence[Any]) -> list[Any]:
        """What was fetched, with parameters as they are now that the step is over."""
        known = self._program.parameters
        return [
            self.scope[name].copy() if name in known else value
            for name, value in zip(fetch, fetched, strict=True)
        ]

    def close(self) -> None:
        """End the threads of replicas."""
        if isinstance(self.executor, ParallelExecutor):
            self.executor.close()


def _fill_what_nobody_trains(scope: Scope, program: Program) -> None:
    """Frozen parameters and counts of metrics, which stay with the trainer."""
    for parameter in program.parameters.values():
        if not (parameter.trainable or parameter.sparse or parameter.name in scope):
            scope[parameter.name] = initial_values(parameter)
    for var in program.vars.values():
        if var.kind == "state" and var.name not in scope:
            scope[var.name] = np.zeros(var.shape, var.dtype)
