"""Parameters that a trainer trains itself: in Geo, and without pservers; and untrained ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from psrt.communicator.geo import GeoTable, UpdateState
from psrt.core.errors import InternalError
from psrt.core.specs import SparseTableSpec, to_plain
from psrt.core.types import F32, I64
from psrt.executor.memory import Scope, initial_values, rows_of_whole
from psrt.executor.parallel import ParallelExecutor
from psrt.executor.program import Executor
from psrt.graph.program import Parameter, Program
from psrt.kernels.tables import fill_rows
from psrt.partition.plan import build_plan


class LocalDenseParameters:
    """The parameters of a Geo trainer: dense ones in its scope, where the updates of `executor`
    train them, and every sparse table, whole."""

    def __init__(
        self, program: Program, scope: Scope, executor: Executor | ParallelExecutor
    ) -> None:
        self._scope, self._executor = scope, executor
        self._parameters = program.parameters.values()
        specs = table_specs(self._parameters)
        self.tables = {spec.name: GeoTable(spec) for spec in specs}

    def dense(self, name: str) -> F32:
        return self._scope[name]

    def agreed(self, other_steps: int) -> None:
        self._executor.parameters_changed(other_steps)

    def optimizers(self) -> Mapping[str, Any]:
        return {p.name: to_plain(p.optimizer) for p in self._parameters if p.optimizer is not None}

    def update_states(self) -> Mapping[str, UpdateState]:
        current = self._executor.update_states.current()
        return {name: UpdateState(*state) for name, state in current.items()}

    def go_on(self, states: Mapping[str, UpdateState]) -> None:
        self._executor.update_states.go_on(states)


class WholeTable:
    """A sparse table of fixed height that lies in the scope; update ops of the program train it."""

    rate: float | None = None

    def __init__(self, parameter: Parameter, scope: Scope) -> None:
        self._parameter, self._scope = parameter, scope

    def read(self, ids: I64) -> F32:
        """Return rows (n, width) of `ids` (n,); zeros for the padding id."""
        rows: F32 = self._scope[self._parameter.name][rows_of_whole(self._parameter, ids)]
        if self._parameter.padding_id is not None:
            rows[ids == self._parameter.padding_id] = 0
        return rows

    def apply(self, ids: I64, gradients: F32) -> None:
        raise InternalError(f"{self._parameter.name} is updated by the program, not by its table")

    def pages(self, page_rows: int) -> Iterator[tuple[I64, F32]]:
        """Pages of ids (n,) and rows (n, width), without the rows that are as they began."""
        table, whole = self._parameter, self._scope[self._parameter.name]
        for start in range(0, len(whole), page_rows):
            rows = whole[start : start + page_rows]
            ids = np.arange(start, start + len(rows), dtype=np.int64)
            untouched = np.empty_like(rows)
            fill_rows(table.initializer, table.seed, ids, untouched)
            changed = (rows != untouched).any(axis=1) & (ids != table.padding_id)
            yield ids[changed], rows[changed]


def table_specs(parameters: Iterable[Parameter]) -> Sequence[SparseTableSpec]:
    """The sparse tables among `parameters`, with the optimizers the program gives them."""
    return build_plan(parameters, ["here"]).sparse


def fill_untrained(scope: Scope, program: Program) -> None:
    """Give frozen dense parameters and counters of metrics their first values."""
    for parameter in program.parameters.values():
        if not (parameter.trainable or parameter.sparse or parameter.name in scope):
            scope[parameter.name] = initial_values(parameter)
    for var in program.vars.values():
        if var.kind == "state" and var.name not in scope:
            scope[var.name] = np.zeros(var.shape, var.dtype)


def updated_by(program: Program) -> frozenset[str]:
    """The vars that the update ops of a program write."""
    updates = (op for op in program.ops if op.role == "optimize")
    return frozenset(name for op in updates for name in op.writes())
