"""Local cuts of a durable job on disk: a thread takes and writes one now and then.

It begins when a trainer of a job with `durability = "delta"` has joined, and ends with `stop`. A
local cut that cannot be written is logged, and the next one has its changes; until then trainers
keep their pushes.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from psrt.core.clock import Clock
from psrt.core.errors import PsrtError
from psrt.core.threads import CrashReport, start_thread
from psrt.pserver.checkpoints import (
    DeltaSchedule,
    LocalCut,
    LocalCuts,
    PartPaces,
    Settings,
    delta_files,
)
from psrt.pserver.decisions import DurablePoint, PserverState, point_of
from psrt.pserver.serving.effect_runner import EffectRunner

log = logging.getLogger("psrt.pserver")

DELTAS = "deltas"
"""The consumer of changes for local cuts on disk."""

DELTA_SHARE = 0.1
"""Share of the time between two local cuts in which one that is not full is written. Meanwhile
updates copy what they are the first to change, and trainers keep what is in it."""

_Taken: TypeAlias = LocalCut[DurablePoint]


class DeltaWriter:
    """The local cuts of one pserver in the directory of `settings`.

    `facts(state)` is JSON with all that a recovery needs besides tables. `confirm` gets the points
    that are on disk. `problem` is the error of the last local cut, "" if it was written.
    """

    def __init__(
        self,
        settings: Settings,
        cuts: LocalCuts[DurablePoint],
        runner: EffectRunner,
        facts: Callable[[PserverState], Mapping[str, Any]],
        confirm: Callable[[DurablePoint], None],
        clock: Clock,
    ) -> None:
        self.problem = ""
        self._directory, self._cuts, self._runner = settings.directory, cuts, runner
        self._facts, self._confirm, self._clock = facts, confirm, clock
        self._schedule = DeltaSchedule(settings.delta_every_s)
        self._paces = PartPaces(settings.bytes_per_s, clock)
        self._within_s = settings.delta_every_s * DELTA_SHARE, settings.timeout_s / 2
        self._name = ""
        self._written: DurablePoint | None = None  # the point of the newest one on disk
        self._changed = threading.Condition()  # guards the schedule
        self._stopped = self._is_over = self._is_writing = False

    def start(self, name: str, crashes: CrashReport) -> None:
        """Write the first one, of pserver `name`, now; may be called again."""
        with self._changed:
            if self._name or self._stopped:
                return
            self._name = name
            self._schedule.begin(self._clock.now())
        start_thread(self._run, "local cuts", crashes)

    def stop(self) -> None:
        """End the thread after the local cut that it is writing."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self._paces.hurry()

    def end(self) -> None:
        """Stop writing, as the job has ended; one that is being written is deleted.

        The others stay: without some of them no pserver could recover, so they go when none would.
        """
        with self._changed:
            self._stopped = self._is_over = True
            self._changed.notify_all()
        self._paces.hurry()

    def wait(self, timeout_s: float) -> bool:
        """Wait for a local cut that is being written; False at the deadline."""
        self._paces.hurry()
        with self._changed:
            return self._changed.wait_for(lambda: not self._is_writing, timeout_s)

    def ask(self) -> None:
        """Write one soon, and one under way at once: somebody waits for it."""
        with self._changed:
            self._schedule.ask()
            self._changed.notify_all()
        self._paces.hurry()

    def contained(self, newest: int) -> None:
        """Delete local cuts up to number `newest`, which a complete cut contains."""
        if self._name:
            self._remove(newest)
            with self._changed:
                self._schedule.replaced()

    def write(self) -> None:
        """Take a local cut, if there were pushes since the last one, and write it."""
        try:
            cut = self._runner.between_updates(self._taken)
        except PsrtError as error:
            self._failed(error)
            return
        if cut is not None:
            self._write(cut)

    def _taken(self, state: PserverState, now: float) -> _Taken | None:
        point = point_of(state, now)
        if state.job is None or not self._cuts.can_take or state.resizing.number:
            return None  # while the number of trainers changes, nothing is pushed
        if self._written is not None and self._written.has_all_of(point):
            return None
        return self._cuts.take(self._facts(state), point, self._schedule.needs_full)

    def _write(self, cut: _Taken) -> None:
        pace = self._paces.expect()
        self._paces.begin(pace, cut.tables, self._within_s[cut.is_full])
        try:
            size_bytes = delta_files.write(self._directory, self._name, cut, pace)
        except (PsrtError, OSError) as error:
            self._cuts.give_up(cut)
            self._failed(error)
            return
        self._cuts.confirm(cut)
        self._written, self.problem = cut.point, ""
        self._confirm(cut.point)
        with self._changed:
            self._schedule.written(size_bytes, cut.is_full)
        if cut.is_full and cut.number > 1:
            self._remove(cut.number - 1)

    def _failed(self, error: Exception) -> None:
        self.problem = str(error)
        log.warning("no local cut was written; trainers keep their pushes: %s", error)

    def _remove(self, newest: int | None) -> None:
        try:
            delta_files.remove(self._directory, self._name, newest)
        except PsrtError as error:
            log.warning("local cuts were not deleted: %s", error)

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._stopped:
                    return
                now = self._clock.now()
                if wait_s := self._schedule.wait_s(now):
                    self._changed.wait(wait_s)
                    continue
                self._schedule.taken(now)
                self._is_writing = True
            self.write()
            self._wrote()

    def _wrote(self) -> None:
        if self._is_over:
            self._remove(None)
        with self._changed:
            self._is_writing = False
            self._changed.notify_all()
