"""Local cuts of one pserver: what changed in its tables since the last one, and its decisions.

A local cut is taken between two updates, without trainers or other pservers. It is handed to one
sink, which writes or sends it while pushes go on. The first of a process is full; each later one
continues the last that its sink has confirmed, so nothing is lost when one is not.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from psrt.coordinator.part_chain import PartChain, PartOutcome
from psrt.pserver.checkpoints.part_writer import Frozen
from psrt.pserver.tables import DenseTable, TableRegistry

PointT = TypeVar("PointT")


@dataclass(frozen=True)
class LocalCut(Generic[PointT]):
    """Frozen tables and `facts`, JSON with the decisions of that moment.

    It continues the local cut `continues`, 0 = it is full. `point` is the end of the pushes in it.
    """

    number: int
    continues: int
    dense: Sequence[Frozen]
    sparse: Sequence[Frozen]
    facts: Mapping[str, Any]
    point: PointT

    @property
    def is_full(self) -> bool:
        return self.continues == 0

    @property
    def tables(self) -> Sequence[Frozen]:
        return (*self.dense, *self.sparse)


class LocalCuts(Generic[PointT]):
    """Takes local cuts for one sink, the `consumer` of changes, one at a time.

    `newest` is the number of the last that was taken.
    """

    def __init__(self, consumer: str, tables: TableRegistry, newest: int = 0) -> None:
        self.newest = newest
        self._consumer, self._tables = consumer, tables
        self._chain = PartChain(sys.maxsize)
        self._tracked: set[str] = set()

    @property
    def can_take(self) -> bool:
        """False while tables are being loaded: they are on disk, and have no updates yet."""
        return not self._tables.loading

    def take(
        self, facts: Mapping[str, Any], point: PointT, is_full: bool = False
    ) -> LocalCut[PointT]:
        """Freeze the changes of all tables; the caller keeps updates out meanwhile.

        Raises `PsrtError` if a table cannot be frozen.
        """
        if is_full:
            self._chain = PartChain(sys.maxsize)
        tables = self._tables.all()
        number = self.newest = self.newest + 1
        continues = self._chain.begin(number, [table.spec.name for table in tables])
        with ExitStack() as undo:
            undo.callback(self._chain.end, number, PartOutcome.GIVEN_UP)
            frozen: list[Frozen] = []
            for table in tables:
                self._track(table)
                is_delta = table.spec.name in continues.deltas
                frozen.append(table.freeze(is_delta, self._consumer))
                undo.callback(frozen[-1].close)
            undo.pop_all()
        pairs = list(zip(frozen, tables, strict=True))
        dense = [each for each, table in pairs if isinstance(table, DenseTable)]
        sparse = [each for each, table in pairs if not isinstance(table, DenseTable)]
        return LocalCut(number, continues.base, dense, sparse, facts, point)

    def confirm(self, cut: LocalCut[PointT]) -> None:
        """Record that all of a local cut is safe: the next one continues it."""
        for table in cut.tables:
            table.close()
            table.confirm()
        self._chain.end(cut.number, PartOutcome.COMPLETE)

    def give_up(self, cut: LocalCut[PointT]) -> None:
        """Record that a local cut is not safe: the next one has its changes, too."""
        for table in cut.tables:
            table.close()
        self._chain.end(cut.number, PartOutcome.GIVEN_UP)

    def _track(self, table: Any) -> None:
        if table.spec.name not in self._tracked:
            table.track_changes(self._consumer)
            self._tracked.add(table.spec.name)
