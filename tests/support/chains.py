"""Pservers whose cuts form chains, in one process: real tables, parts, manifests and retention."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from psrt.coordinator.part_chain import PartOutcome
from psrt.coordinator.retention import Retention
from psrt.core.errors import PsrtError
from psrt.core.specs import DenseTableSpec, SparseTableSpec, Sync, TableSpec, to_plain
from psrt.core.threads import CrashReport
from psrt.pserver.checkpoints import Coordination, Cutting, SavedCut, Settings
from psrt.pserver.eviction import Upkeep
from psrt.pserver.tables import TableRegistry
from psrt.pserver.tables.meters import Meters
from psrt.storage.directory import Directory
from tests.support.clock import ManualClock
from tests.support.cuts import ENDPOINTS, STATE, WAIT_S
from tests.support.frozen import DENSE, RATE, Push, apply_share, state_of, state_of_block

JOB = {"id": "chained", "trainers": 1, "mode": to_plain(Sync()), "plan_hash": "0" * 64}


class Fate(enum.Enum):
    """End of a cut that a test wants."""

    COMPLETE = "complete"
    GIVEN_UP = "given up: the second pserver cannot write its part"
    UNKNOWN = "complete, but the answer to the second pserver is lost"


def specs_of(sparse: SparseTableSpec, pservers: int = 2) -> list[list[TableSpec]]:
    """Specs for each pserver: a block of a dense parameter, and shards of a table."""
    blocks, shards = 60 // pservers, sparse.virtual_shards // pservers
    return [
        [
            replace(DENSE["adagrad"], name=f"w.{i}", offset=blocks * i, size=blocks),
            replace(sparse, first_shard=shards * i, last_shard=shards * (i + 1)),
        ]
        for i in range(pservers)
    ]


class ChainedPservers:
    """Two pservers, the coordinator of their cuts, and `states` of what they held, by cut."""

    def __init__(
        self,
        directory: Directory,
        specs: Sequence[Sequence[TableSpec]],
        full_every: int = 4,
        retention: Retention | None = None,
    ) -> None:
        settings = Settings(directory, retention=retention or Retention(100), full_every=full_every)
        self.crashes = CrashReport()
        self.registries = [registered(each) for each in specs]
        self.states: dict[int, Any] = {}
        self._fate = Fate.COMPLETE
        self._cuttings = [
            Cutting(settings, tables, _upkeep(tables), self.crashes, self._report(index))
            for index, tables in enumerate(self.registries)
        ]
        for index, cutting in enumerate(self._cuttings):
            cutting.index = index
        self._cuts = Coordination(settings, ENDPOINTS, ManualClock(), lambda: 1, self.crashes)

    def close(self) -> None:
        self._cuts.stop()
        assert self.crashes.error is None

    def push(self, push: Push) -> None:
        """Apply a push to the sparse tables, and a gradient to the dense blocks."""
        apply_share([tables.all_sparse()[0] for tables in self.registries], [push])
        for tables in self.registries:
            block = next(t for t in tables.all() if isinstance(t.spec, DenseTableSpec))
            block.apply(np.full(block.spec.size, push.gradients[0, 0], np.float32), RATE)

    def drop(self, ids: np.ndarray) -> None:
        for tables in self.registries:
            for table in tables.all_sparse():
                drop_rows(table, ids)

    def cut(self, fate: Fate = Fate.COMPLETE) -> int:
        """Make a cut; returns its number, 0 if it was given up."""
        self._fate = fate
        caller = self._cuts.request()
        number = self._cuts.proposed
        state = all_state(self.registries)
        for cutting in self._cuttings:
            cutting.freeze(number, _facts())
        try:
            caller.future.result(WAIT_S)
        except PsrtError:
            number = 0
        for cutting in self._cuttings:
            assert cutting.wait(WAIT_S)
        if number:
            self.states[number] = state
        return number

    def _report(self, index: int) -> Any:
        def report(number: int, record: str, problem: str) -> PartOutcome:
            if index == 1 and self._fate is Fate.GIVEN_UP:
                problem = "no space is left"
            caller = self._cuts.part(number, ENDPOINTS[index], record, problem)
            try:
                caller.future.result(WAIT_S)
            except PsrtError:
                return PartOutcome.GIVEN_UP
            if index == 1 and self._fate is Fate.UNKNOWN:
                return PartOutcome.UNKNOWN
            return PartOutcome.GIVEN_UP if problem else PartOutcome.COMPLETE

        return report


def registered(specs: Sequence[TableSpec], cut: SavedCut | None = None) -> TableRegistry:
    """Tables of one pserver, restored from `cut` if there is one."""
    tables = TableRegistry(2)
    if cut is None:
        tables.register(specs)
    else:
        tables.register(specs, prepare=cut.restore_into)
    return tables


def all_state(registries: Sequence[TableRegistry]) -> Any:
    """All that pservers hold together, to the last bit, however they share it.

    The optimizer of dense blocks has one vector of state.
    """
    blocks = sorted(
        (table.spec.offset, *state_of_block(table))
        for tables in registries
        for table in tables.all()
        if isinstance(table.spec, DenseTableSpec)
    )
    values = b"".join(block[1] for block in blocks), b"".join(block[2] for block in blocks)
    versions = {block[3] for block in blocks}
    sparse = [table for tables in registries for table in tables.all_sparse()]
    return values, versions, state_of(*sparse) if sparse else []


def drop_rows(table: Any, ids: np.ndarray) -> None:
    """Drop the rows of `ids` that a table has, as a sweep does."""

    def decide(rows: np.ndarray) -> np.ndarray:
        return np.isin(rows.view(np.int64)[:, 1], ids).astype(np.uint8)

    cursor = 0
    while True:
        _, cursor = table.sweep(cursor, 1 << 20, decide)
        if cursor == 0:
            return


def _upkeep(tables: TableRegistry) -> Upkeep:
    return Upkeep(tables.all_sparse, Meters())


def _facts() -> dict[str, Any]:
    return {"job": JOB, "round": 1, "step": 0, "participants": [[0, 7, STATE]]}
