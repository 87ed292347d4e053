"""Training in this process: an executor that ends its steps with the program's own updates, and the
parameters these leave to others.

A trainer alone does it, and every trainer of a Geo job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from psrt.communicator.base import Gradients
from psrt.communicator.geo import GeoTable
from psrt.core.specs import SparseTableSpec
from psrt.core.types import F32
from psrt.executor.memory import RowBatch, Scope
from psrt.executor.parallel import ParallelExecutor
from psrt.executor.ports import OnGradient
from psrt.executor.program import Executor
from psrt.graph.program import Parameter, Program, Role
from psrt.partition.plan import build_plan
from psrt.trainer.inputs import Feed, Fetched

AnyExecutor: TypeAlias = Executor | ParallelExecutor


class LocalUpdates:
    """An executor each of whose steps ends with the program's own updates.

    The gradients of tables that these do not update are for whoever holds the tables.
    """

    ROLES: tuple[Role, ...] = ("forward", "backward", "optimize")
    on_gradient: OnGradient | None = None
    """Nobody is told: gradients do not leave."""

    def __init__(self, executor: AnyExecutor, program: Program) -> None:
        self._executor = executor
        updated = {name for op in program.ops if op.role == "optimize" for name in op.writes()}
        self._apart = [p.name for p in program.trained() if p.name not in updated]

    def run(
        self, feed: Feed, fetch: Sequence[str], rows: Mapping[str, RowBatch]
    ) -> Sequence[Fetched]:
        return self._executor.run(feed, fetch, rows, self.ROLES)

    def gradients(self) -> Gradients:
        if not self._apart:
            return {}
        gradients = self._executor.gradients()
        return {name: gradients[name] for name in self._apart}


class LocalDenseParameters:
    """What a Geo trainer holds: dense parameters in its scope, where the updates of `executor`
    train them, and every sparse table, whole, beside it."""

    def __init__(self, program: Program, scope: Scope, executor: AnyExecutor) -> None:
        self._scope, self._executor = scope, executor
        specs = table_specs(program.parameters.values())
        self.tables = {spec.name: GeoTable(spec) for spec in specs}

    def dense(self, name: str) -> F32:
        return self._scope[name]

    def agreed(self, other_steps: int) -> None:
        self._executor.parameters_changed(other_steps)


def table_specs(parameters: Iterable[Parameter]) -> Sequence[SparseTableSpec]:
    """The sparse tables among `parameters`, with the optimizers the program gives them."""
    return build_plan(parameters, ["here"]).sparse
