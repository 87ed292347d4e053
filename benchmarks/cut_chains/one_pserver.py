"""The tables of one pserver and its cuts, without trainers."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from benchmarks.measuring import harness
from psrt.coordinator.part_chain import PartOutcome
from psrt.coordinator.retention import Retention
from psrt.core.clock import MonotonicClock
from psrt.core.errors import PsrtError
from psrt.core.threads import CrashReport
from psrt.pserver.checkpoints import Coordination, Cutting, Settings
from psrt.pserver.eviction import Upkeep
from psrt.pserver.tables import TableRegistry
from psrt.pserver.tables.meters import Meters
from psrt.storage.local_directory import LocalDirectory

ENDPOINT, WAIT_S = "here:1", 600.0
FACTS = {"job": {"id": "benchmark", "trainers": 0, "mode": {"kind": "Sync"}}, "round": 0, "step": 0}


class OnePserver:
    """Tables of one pserver and its cuts, without trainers."""

    def __init__(self, folder: Path, tables: TableRegistry, full_every: int) -> None:
        crashes = CrashReport()
        settings = Settings(
            LocalDirectory(folder), retention=Retention(keep=1), full_every=full_every
        )
        self.tables = tables
        (self.table,) = tables.all_sparse()
        upkeep = Upkeep(self.tables.all_sparse, Meters())
        self._cutting = Cutting(settings, self.tables, upkeep, crashes, self._reported)
        self._cuts = Coordination(settings, [ENDPOINT], MonotonicClock(), lambda: 0, crashes)
        self._written = threading.Event()

    def cut(self) -> harness.Figures:
        """Make a cut; returns its figures."""
        self._written.clear()
        done = self._cuts.request()
        began, cpu_s = time.perf_counter(), time.process_time()
        self._cutting.freeze(self._cuts.proposed, {**FACTS, "participants": []})
        froze_s = time.perf_counter() - began
        self._written.wait(WAIT_S)
        took_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu_s
        done.future.result(WAIT_S)
        self._cutting.wait(WAIT_S)
        return {"seconds": took_s, "cpu_s": cpu_s, "freeze_ms": froze_s * 1e3}

    def close(self) -> None:
        self._cuts.stop()

    def _reported(self, number: int, record: str, problem: str) -> PartOutcome:
        self._written.set()
        try:
            self._cuts.part(number, ENDPOINT, record, problem).future.result(WAIT_S)
        except PsrtError:
            return PartOutcome.GIVEN_UP
        return PartOutcome.COMPLETE
