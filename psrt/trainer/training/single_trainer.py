"""Training without pservers: one trainer that holds every parameter and updates it itself.

Dense parameters and tables of fixed height lie in the scope, where the program's own update ops
train them. Distributed tables, which no scope can hold, are `LocalTable`s.
"""

from __future__ import annotations

from collections.abc import Iterator

from psrt.communicator.geo import LocalTable
from psrt.communicator.local import LocalCommunicator
from psrt.communicator.members import Members
from psrt.core.types import F32, I64
from psrt.executor.memory import Scope
from psrt.graph.program import Program
from psrt.trainer.training.local_parameters import WholeTable, table_specs

PAGE_ROWS = 1 << 17


class SingleTrainer:
    """A cluster of one trainer and no pserver; fills `scope` with initial values."""

    def __init__(self, program: Program, scope: Scope) -> None:
        scope.init_parameters(program)
        self._tables = tables_of(program, scope)
        self.communicator = LocalCommunicator(self._tables)
        self.tables = tuple(p.name for p in program.trained() if p.sparse)

    def members(self) -> Members:
        """Return no other trainer."""
        return Members((), 0)

    def rows(self, table: str) -> Iterator[tuple[I64, F32]]:
        """Pages of ids (n,) and rows (n, width) that training has changed.

        An untouched row is left out, as a pserver does: it is a function of its id.
        """
        return self._tables[table].pages(PAGE_ROWS)

    @property
    def distributed(self) -> dict[str, LocalTable]:
        """The tables that are not in the scope."""
        tables = self._tables.items()
        return {name: table for name, table in tables if isinstance(table, LocalTable)}

    def end_early(self) -> None:
        """Do nothing: there is no other trainer."""

    def hurry(self) -> None:
        """Do nothing: there is no pserver to wait for."""

    def close(self) -> None:
        """Do nothing: there is no connection."""


def tables_of(program: Program, scope: Scope) -> dict[str, WholeTable | LocalTable]:
    """The sparse tables of a program in this process, by name."""
    distributed = [p for p in program.trained() if p.distributed]
    local = {spec.name: LocalTable(spec) for spec in table_specs(distributed)}
    sparse = [p for p in program.parameters.values() if p.sparse and p.name not in local]
    return {**local, **{p.name: WholeTable(p, scope) for p in sparse}}
