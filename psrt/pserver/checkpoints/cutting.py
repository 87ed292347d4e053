"""The part of this pserver in cuts: freeze all tables, write them, report.

`freeze` is called while no push is under way, and takes milliseconds. A thread writes the frozen
tables while pushes go on, and reports the record of the part, or why there is none.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from psrt.coordinator.retention import Retention
from psrt.coordinator.schedule import CutSchedule
from psrt.core.errors import JobError, PsrtError
from psrt.core.threads import CrashReport, start_thread
from psrt.pserver.checkpoints.part_writer import Frozen, write_part
from psrt.pserver.tables import DenseTable, TableRegistry, Upkeep
from psrt.storage.directory import Directory

log = logging.getLogger("psrt.pserver")

Report = Callable[[int, str, str], None]
"""Called with a cut's number, and either the record of the part or a problem."""


SWEEP_S = 0.02
"""Wait for a sweep under way, in which all trainers wait; then the cut is given up."""


@dataclass(frozen=True)
class Settings:
    """Place and times of cuts. A cut that is not complete after `timeout_s` is given up."""

    directory: Directory
    schedule: CutSchedule = field(default_factory=CutSchedule)
    retention: Retention = field(default_factory=Retention)
    timeout_s: float = 600.0


class Cutting:
    """Freezes and writes the tables of one pserver, one cut at a time; sweeps wait meanwhile."""

    def __init__(
        self,
        directory: Directory,
        tables: TableRegistry,
        upkeep: Upkeep,
        crashes: CrashReport,
        report: Report,
    ) -> None:
        self.index = 0
        self._directory, self._tables, self._crashes = directory, tables, crashes
        self._upkeep = upkeep
        self._report = report
        self._writing = 0  # the cut that is being written, 0 = none
        self._is_idle = threading.Event()
        self._is_idle.set()

    def freeze(self, number: int, facts: Mapping[str, Any]) -> None:
        """Freeze all tables for cut `number`, and start to write them with `facts`.

        Raises `JobError` while an earlier cut is being written.
        """
        if self._writing:
            raise JobError(f"cut {self._writing} is still being written.")
        tables = self._tables.all()
        with ExitStack() as undo:
            undo.enter_context(self._upkeep.put_off(SWEEP_S))
            frozen = [self._frozen(table, undo) for table in tables]
            ends = undo.pop_all()
        self._writing = number
        self._is_idle.clear()
        dense = [f for f, t in zip(frozen, tables, strict=True) if isinstance(t, DenseTable)]
        sparse = [f for f, t in zip(frozen, tables, strict=True) if not isinstance(t, DenseTable)]
        start_thread(
            lambda: self._write(number, dense, sparse, facts, ends), f"cut {number}", self._crashes
        )

    def _frozen(self, table: Any, undo: ExitStack) -> Frozen:
        frozen: Frozen = table.freeze()
        undo.callback(frozen.close)
        return frozen

    def _write(
        self,
        number: int,
        dense: Sequence[Frozen],
        sparse: Sequence[Frozen],
        facts: Mapping[str, Any],
        ends: ExitStack,
    ) -> None:
        record, problem = "", ""
        try:
            record = write_part(self._directory, number, self.index, dense, sparse, facts)
        except (PsrtError, OSError) as error:
            problem = str(error)
            log.warning("cut %d was not written: %s", number, problem)
        finally:
            ends.close()
            self._writing = 0
        self._report(number, record, problem)
        self._is_idle.set()

    def wait(self, timeout_s: float) -> bool:
        """Wait until no part is being written; False at the deadline."""
        return self._is_idle.wait(timeout_s)
