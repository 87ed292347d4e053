"""The part of this pserver in cuts: freeze all tables, write them, report.

`freeze` is called while no push is under way, and takes milliseconds. A thread writes the frozen
tables while pushes go on, and reports the record of the part, or why there is none. It waits until
the cut is complete or given up: that decides what the next part continues.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

from psrt.coordinator.part_chain import Continuation, PartChain, PartOutcome
from psrt.coordinator.retention import Retention
from psrt.coordinator.schedule import CutSchedule
from psrt.core.clock import Clock, MonotonicClock
from psrt.core.errors import JobError, PsrtError
from psrt.core.failpoints import reach
from psrt.core.threads import CrashReport, start_thread
from psrt.pserver.checkpoints.cut_history import CutHistory
from psrt.pserver.checkpoints.late_states import LateStates
from psrt.pserver.checkpoints.part_pace import PartPaces
from psrt.pserver.checkpoints.part_writer import Frozen, size_of_part, write_part
from psrt.pserver.checkpoints.stored_cuts import has_part, remove_part
from psrt.pserver.checkpoints.trainer_states import TrainerStates
from psrt.pserver.eviction import Upkeep
from psrt.pserver.tables import DenseTable, TableRegistry
from psrt.storage.directory import Directory
from psrt.storage.pacing import WritePace

log = logging.getLogger("psrt.pserver")

Report = Callable[[int, str, str], PartOutcome]
"""Called with a cut's number, and either the record of the part or a problem; returns what became
of the cut."""


NONE: Mapping[int, int] = MappingProxyType({})

SWEEP_S = 0.02
"""Wait for a sweep under way, in which all trainers wait; then the cut is given up."""


@dataclass(frozen=True)
class Settings:
    """Place and times of cuts. A cut that is not complete after `timeout_s` is given up.

    Pservers of jobs with `durability = "delta"` also write a local cut every `delta_every_s`.

    Of `full_every` parts in a row one is full, and the others have what changed since the one
    before. `at_end` makes a cut when all trainers have trained. A pserver that ends waits `grace_s`
    for one. While trainers push, a part is written at `bytes_per_s` at most, 0 = no limit.
    """

    directory: Directory
    schedule: CutSchedule = field(default_factory=CutSchedule)
    retention: Retention = field(default_factory=Retention)
    timeout_s: float = 600.0
    full_every: int = 8
    at_end: bool = False
    grace_s: float = 30.0
    delta_every_s: float = 5.0
    bytes_per_s: float = 0.0


class PartTakenError(JobError):
    """The error of a part that a former process has written, which a manifest may name."""


@dataclass(frozen=True)
class _FrozenPart:
    """The frozen tables of cut `number`, which `ends` closes, and what is written of them."""

    number: int
    dense: Sequence[Frozen]
    sparse: Sequence[Frozen]
    facts: Mapping[str, Any]
    base: int
    ends: ExitStack
    pace: WritePace
    late: LateStates | None


class Cutting:
    """Freezes and writes the tables of one pserver, one cut at a time; sweeps wait meanwhile."""

    def __init__(
        self,
        settings: Settings,
        tables: TableRegistry,
        upkeep: Upkeep,
        crashes: CrashReport,
        report: Report,
        clock: Clock | None = None,
    ) -> None:
        self.index = 0
        self.complete = 0  # the newest cut that is complete for certain
        self.states, self.history = TrainerStates(settings.directory), CutHistory()
        self._directory, self._timeout_s = settings.directory, settings.timeout_s
        self._tables, self._crashes = tables, crashes
        self._upkeep = upkeep
        self._report = report
        self._chain = PartChain(settings.full_every)
        self._chaining = threading.Lock()  # guards the chain
        self._tracked: set[str] = set()  # tables that record their changes
        self._writing = 0  # the cut that is being written, 0 = none
        self._newest = 0  # the cut that was frozen last
        self._paces = PartPaces(settings.bytes_per_s, clock or MonotonicClock())
        self._is_idle = threading.Event()
        self._is_idle.set()

    def freeze(
        self,
        number: int,
        facts: Mapping[str, Any],
        processes: Mapping[int, int] = NONE,
        is_paced: bool = False,
        late: LateStates | None = None,
    ) -> None:
        """Freeze all tables for cut `number`, and start to write them with `facts`.

        The part also has the states of trainers, which `processes` send: incarnations by trainer,
        and `late` ones of another cut.
        It `is_paced` if trainers push meanwhile.
        Raises `JobError` while an earlier cut is being written.
        """
        if self._writing:
            raise JobError(f"this pserver still writes its part of cut {self._writing}.")
        tables = self._tables.all()
        with self._chaining:
            continues = self._chain.begin(number, [table.spec.name for table in tables])
        try:
            frozen, ends = self._frozen(tables, continues)
        except BaseException:
            self._ended(number, PartOutcome.GIVEN_UP)
            raise
        self.states.expect(number, self.index, processes)
        self._writing = self._newest = number
        self.history.began(number)
        self._is_idle.clear()
        dense = [f for f, t in zip(frozen, tables, strict=True) if isinstance(t, DenseTable)]
        sparse = [f for f, t in zip(frozen, tables, strict=True) if not isinstance(t, DenseTable)]
        pace = self._paces.expect(is_paced)
        part = _FrozenPart(number, dense, sparse, facts, continues.base, ends, pace, late)
        start_thread(partial(self._write, part), f"cut {number}", self._crashes)

    def _frozen(
        self, tables: Sequence[Any], continues: Continuation
    ) -> tuple[list[Frozen], ExitStack]:
        """All tables as they are now, and what ends that."""
        with ExitStack() as undo:
            undo.enter_context(self._upkeep.put_off(SWEEP_S))
            frozen: list[Frozen] = []
            for table in tables:
                self._track(table)
                frozen.append(table.freeze(is_delta=table.spec.name in continues.deltas))
                undo.callback(frozen[-1].close)
            return frozen, undo.pop_all()

    def _track(self, table: Any) -> None:
        """Let a table record its changes from its first part on, which is full."""
        if self._chain.has_deltas and table.spec.name not in self._tracked:
            table.track_changes()
            self._tracked.add(table.spec.name)

    def _write(self, part: _FrozenPart) -> None:
        """Write a part, report it, and wait for the end of its cut."""
        record, problem, is_taken = "", "", False
        try:
            record = self._record_of(part)
        except (PsrtError, OSError) as error:
            problem, is_taken = str(error), isinstance(error, PartTakenError)
            log.warning("cut %d was not written: %s", part.number, problem)
        finally:
            part.ends.close()
            self._writing = 0
        outcome = self._report(part.number, record, problem)
        self._conclude(part, PartOutcome.UNKNOWN if is_taken else outcome)

    def _record_of(self, part: _FrozenPart) -> str:
        """Write the files of a part; returns its record."""
        reach("cut.frozen")
        if has_part(self._directory, part.number, self.index):
            raise PartTakenError(f"the former process has written part {self.index} of this cut.")
        self._paces.begin(part.pace, (*part.dense, *part.sparse), self._timeout_s / 2)
        record = write_part(
            *(self._directory, part.number, self.index, part.dense, part.sparse, part.facts),
            base=part.base,
            states=partial(self._states, part.number, part.late),
            pace=part.pace,
        )
        self.history.written(part.number, size_of_part(record))
        return record

    def _conclude(self, part: _FrozenPart, outcome: PartOutcome) -> None:
        """Confirm the tables of a complete cut; delete the part of one that was given up."""
        if outcome is PartOutcome.COMPLETE and part.number > self.complete:  # a late end is behind
            for table in (*part.dense, *part.sparse):
                table.confirm()
            self.complete = part.number
        elif outcome is PartOutcome.GIVEN_UP:
            self.discard(part.number)
        self._ended(part.number, outcome)
        if part.number == self._newest:
            self._is_idle.set()

    def _states(self, number: int, late: LateStates | None) -> list[dict[str, Any]]:
        """The files of trainer states, once all are there."""
        copied = late.copied(self._directory, number, self.index) if late is not None else []
        return copied + self.states.collect(self._timeout_s)

    def _ended(self, number: int, outcome: PartOutcome) -> None:
        """Let later parts continue a cut; its tables are confirmed before."""
        with self._chaining:
            self._chain.end(number, outcome)

    def discard(self, number: int) -> None:
        """Delete this pserver's part of a cut that was given up."""
        try:
            remove_part(self._directory, number, self.index)
        except PsrtError as error:
            log.warning("part %d of cut %d was not deleted: %s", self.index, number, error)

    def hurry(self, for_s: float = 0.0) -> None:
        """Write the part under way, and those that begin within `for_s`, as fast as possible."""
        self._paces.hurry(for_s)

    def wait(self, timeout_s: float) -> bool:
        """Wait until the cut of the newest part is complete or given up; False at the deadline."""
        return self._is_idle.wait(timeout_s)
