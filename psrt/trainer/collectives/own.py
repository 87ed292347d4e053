"""The parameters of a trainer without pservers: dense ones in its scope, tables beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from psrt.communicator.geo import LocalTable
from psrt.core.errors import ConfigError
from psrt.core.types import F32, Shape
from psrt.executor.memory import Scope, initial_values
from psrt.executor.parallel import ParallelExecutor
from psrt.executor.program import Executor
from psrt.graph.program import Program
from psrt.partition.parameter_specs import check_for_geo
from psrt.partition.plan import build_plan


class OwnParameters:
    """Parameters of `program` in `scope`, which gets first values unless it has them.

    `executor` runs the updates of dense ones. Raises `ConfigError` for a table with options that
    need a pserver, and for replicas.
    """

    def __init__(
        self, program: Program, scope: Scope, executor: Executor | ParallelExecutor
    ) -> None:
        if isinstance(executor, ParallelExecutor):
            raise ConfigError(
                "mode collective was asked for with several replicas in one trainer.",
                hint="Start more trainers instead, one for each core or device, and leave cpu_num "
                "and CPU_NUM at 1.",
            )
        self._scope, self._executor = scope, executor
        specs = build_plan(program.parameters.values(), ["here"]).sparse
        for spec in specs:
            check_for_geo(spec, "collective")
        self.tables = {spec.name: LocalTable(spec, decays=True) for spec in specs}
        self.widths = {spec.name: spec.width for spec in specs}
        self.gradients = gradient_order(program)
        for name, _ in self.gradients:
            if name not in scope:
                scope[name] = initial_values(program.parameters[name])

    def dense(self, name: str) -> F32:
        return self._scope[name]

    def update(self, means: Mapping[str, F32]) -> None:
        self._executor.update(means)


def gradient_order(program: Program) -> Sequence[tuple[str, Shape]]:
    """Dense parameters with a gradient and their shapes, in the order in which they are final."""
    made = program.gradients()
    roles = ("backward", "clip_and_decay")
    in_order = sorted(
        (op for op in program.ops if op.role in roles), key=lambda op: roles.index(op.role)
    )
    last = {name: place for place, op in enumerate(in_order) for name in op.writes()}
    dense = [p for p in program.parameters.values() if p.name in made and not p.sparse]
    dense.sort(key=lambda p: last.get(made[p.name], len(in_order)))
    return [(p.name, p.shape) for p in dense]


__all__ = ["OwnParameters", "gradient_order"]
