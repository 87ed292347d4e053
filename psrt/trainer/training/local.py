"""Training without pservers: one trainer that holds every parameter and updates them itself.

`Local` stands where `Cluster` stands, and `LocalTables` where a communicator stands, so that
session, loop, evaluation and export are the same as in a cluster. Parameters lie in the scope of
the workshop, where the program's own update ops train them; distributed tables, which have no
limits to fit into a scope, are `LocalTable`s that the gradients of a step are applied to.

Belongs to the training thread, but for `pull_rows`, which an evaluation calls from another one
while nothing trains.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Self

import numpy as np

from psrt.communicator.base import Gradient, Gradients, Pulled, Timeline
from psrt.communicator.geo import LocalTable
from psrt.core.counters import Counters
from psrt.core.errors import ConfigError
from psrt.core.tensors import SelectedRows
from psrt.core.types import F32, I64
from psrt.executor.memory import Scope, rows_of_whole
from psrt.graph.program import Parameter, Program
from psrt.kernels.tables import fill_rows
from psrt.trainer.training.completion import Members
from psrt.trainer.training.local_parameters import table_specs
from psrt.trainer.training.workshop import Workshop

PAGE_ROWS = 1 << 17


class LocalTables:
    """All sparse tables, by the calls of a communicator; nothing leaves the process."""

    def __init__(self, program: Program, scope: Scope) -> None:
        self.counters = Counters()
        self._parameters, self._scope = program.parameters, scope
        distributed = [p for p in program.trained() if p.distributed]
        self._growing = {spec.name: LocalTable(spec) for spec in table_specs(distributed)}
        self._next: Mapping[str, I64] = {}

    def watch(self, timeline: Timeline | None) -> None:
        """Nothing travels."""

    def start(self, timeout_s: float) -> dict[str, F32]:
        """Nothing to reach: the parameters are in the scope."""
        return {}

    def pull_rows(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        return {name: self._read(name, ids) for name, ids in wanted.items()}

    def begin(self, wanted: Mapping[str, I64]) -> None:
        self._next = wanted

    def finish(self, gradients: Gradients) -> Pulled:
        """Update what the step has not; read the rows of the next one, if there is one."""
        for name, gradient in gradients.items():
            assert isinstance(gradient, SelectedRows), name
            self._growing[name].apply(gradient.ids, gradient.values)
        wanted, self._next = self._next, {}
        return Pulled(rows=self.pull_rows(wanted))

    def offer(self, name: str, gradient: Gradient) -> None:
        pass

    def flush(self, timeout_s: float, final: bool = False) -> dict[str, F32]:
        return {}

    def stop(self, timeout_s: float) -> dict[str, F32]:
        return {}

    def close(self) -> None:
        pass

    def pages(self, table: str) -> Iterator[tuple[I64, F32]]:
        """The rows training has changed: pages of ids (n,) and rows (n, width).

        An untouched row is left out, as a pserver does, for it is a function of its id.
        """
        if table in self._growing:
            return self._growing[table].pages(PAGE_ROWS)
        return changed_rows(self._parameters[table], self._scope[table])

    def _read(self, name: str, ids: I64) -> F32:
        if name in self._growing:
            return self._growing[name].read(ids)
        table = self._parameters[name]
        rows: F32 = self._scope[name][rows_of_whole(table, ids)]
        if table.padding_id is not None:
            rows[ids == table.padding_id] = 0
        return rows


class Local:
    """What `Cluster` is to other trainers; fills the scope with initial values."""

    def __init__(self, shop: Workshop) -> None:
        program = shop.job.program
        if not program.trained():
            raise ConfigError(
                f"the program of job {shop.job.config.name} trains nothing.",
                hint="Give psrt.Model an optimizer.",
            )
        shop.scope.init_parameters(program)
        self.communicator = LocalTables(program, shop.scope)
        self.tables = tuple(p.name for p in program.trained() if p.sparse)

    def members(self) -> Members:
        """No other trainer."""
        return Members((), 0)

    def rows(self, table: str) -> Iterator[tuple[I64, F32]]:
        return self.communicator.pages(table)

    def hurry(self) -> None:
        pass

    def close(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def changed_rows(table: Parameter, whole: F32) -> Iterator[tuple[I64, F32]]:
    """Pages of ids and rows of a table in a scope, without the rows that are as they began."""
    for start in range(0, len(whole), PAGE_ROWS):
        rows = whole[start : start + PAGE_ROWS]
        ids = np.arange(start, start + len(rows), dtype=np.int64)
        untouched = np.empty_like(rows)
        fill_rows(table.initializer, table.seed, ids, untouched)
        changed = (rows != untouched).any(axis=1) & (ids != table.padding_id)
        yield ids[changed], rows[changed]
