"""The durable part of a pserver's state: in complete cuts, and in local cuts on disk.

Replies name what is durable, and trainers drop the copies of those pushes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from psrt.core.clock import Clock
from psrt.core.threads import CrashReport
from psrt.pserver.checkpoints import LocalCuts, RecoveredPart, Settings, delta_files
from psrt.pserver.decisions import DurablePoint, DurableProgress, PserverState, point_of
from psrt.pserver.serving.durable.delta_writer import DELTAS, DeltaWriter
from psrt.pserver.serving.durable.part_facts import local_facts
from psrt.pserver.serving.durable.served_file import ServedFile
from psrt.pserver.serving.effect_runner import EffectRunner
from psrt.pserver.serving.request_headers import caller_of
from psrt.pserver.tables import TableRegistry
from psrt.rpc import pb

_T = TypeVar("_T")

MOST_CUTS = 8
"""Cuts whose end is awaited; of older ones, which could not begin, nothing is kept."""


class Durability:
    """The durable state of one pserver; `incarnation` is that of its tables.

    `is_asked` is True if the job of a trainer is durable by cuts. In one that `is_replicated` only
    what a backup has is: trainers never send again what a cut has. `on_hurry` is called when one
    waits for its pushes to be durable. `began_at` is the cut that trainers begin with: at which
    their number has changed last, or that the job has resumed; 0 = none.
    """

    def __init__(
        self,
        tables: TableRegistry,
        incarnation: int,
        recovered: RecoveredPart | None,
        clock: Clock,
        crashes: CrashReport,
    ) -> None:
        self.is_asked = self.is_replicated = False
        self.began_at = 0 if recovered is None else recovered.began_at
        self.on_hurry: Callable[[], None] = lambda: None
        self.progress = DurableProgress()
        self._process = 1 if recovered is None else recovered.process + 1
        newest = 0 if recovered is None else recovered.newest
        self._local = LocalCuts[DurablePoint](DELTAS, tables, newest)
        self._tables, self._incarnation = tables, incarnation
        self._is_recovered = recovered is not None
        self._clock, self._crashes = clock, crashes
        self._confirming, self._joining = threading.Lock(), threading.Lock()
        self._index, self._writes_deltas = 0, False
        self._writer: DeltaWriter | None = None
        self._runner: EffectRunner | None = None
        self._served: ServedFile | None = None
        self._last_cut_s: float | None = None  # when the newest cut was found complete
        self._points: dict[int, tuple[DurablePoint, int]] = {}  # by number of a cut under way

    def greeted(self, hello: pb.Hello) -> None:
        """Record what the job of a trainer asks for."""
        self.is_asked |= hello.durability in ("cut", "delta")
        self._writes_deltas |= hello.durability == "delta"
        self.is_replicated |= hello.durability == "replica"

    @property
    def is_durable(self) -> bool:
        """True if trainers keep pushes until they are durable, in any way."""
        return self.is_asked or self.is_replicated

    def recovered(self, state: PserverState, now: float) -> None:
        """Record that the state was read from disk."""
        self.progress.confirm(point_of(state, now), now)

    def write_to(self, settings: Settings, runner: EffectRunner) -> None:
        """Write local cuts to the directory of cuts, if the job asks for it."""
        self._runner = runner
        self._writer = DeltaWriter(
            *(settings, self._local, runner, self._facts, self._confirm, self._clock)
        )

    def joins(
        self, settings: Settings, name: str, index: int, beginning: dict[str, Any] | None
    ) -> None:
        """Record a trainer that joins pserver `name`, number `index` of the plan, before it pushes.

        `beginning` is what `served_job.record` needs besides decisions to go on from the beginning
        of the job, None = that is not possible. With backups nothing is recorded.
        """
        if self.is_replicated:
            return
        with self._joining:
            if self._served is None:
                self._index = index
                began = None if beginning is None else self._began(beginning)
                self._served = ServedFile(settings.directory, name, self._incarnation, began)
        self._served.joined(lambda: self._ask(lambda state, now: state.members.dump()))

    def begin(self, settings: Settings, name: str) -> None:
        """Begin to write local cuts as pserver `name`."""
        if not self._is_recovered:
            delta_files.remove(settings.directory, name)
        if self._writes_deltas and self._writer is not None:
            self._writer.start(name, self._crashes)

    def stop(self) -> None:
        """End the thread that writes local cuts."""
        if self._writer is not None:
            self._writer.stop()

    def job_ended(self) -> None:
        """Stop writing, and delete the file of the served job: nothing is left to recover."""
        if self._writer is not None:
            self._writer.end()
        if self._served is not None:
            self._served.remove()

    def finish(self, timeout_s: float) -> bool:
        """Wait for a local cut that is being written; False at the deadline."""
        return self._writer is None or self._writer.wait(timeout_s)

    # --- cuts of the job ---

    def frozen(self, state: PserverState, number: int, now: float) -> dict[str, int]:
        """Facts for the part of a cut whose tables are frozen now."""
        self._points[number] = point_of(state, now), self._local.newest
        self._points.pop(number - MOST_CUTS, None)
        facts = {"process": self._process, "local_cut": self._local.newest}
        return {**facts, "began_at": self.began_at}

    def ended(self, number: int, is_complete: bool) -> None:
        """Record the end of a cut that this process has a part of."""
        if is_complete:
            self._last_cut_s = self._clock.now()
        point, newest = self._points.pop(number, (None, 0))
        if is_complete and point is not None and not self.is_replicated:
            self._confirm(point)
            if self._writer is not None:
                self._writer.contained(newest)

    # --- replies ---

    def report(self, header: pb.Header, reply: pb.Header) -> None:
        """Put into a reply what is durable for the caller."""
        if durable_to := self.progress.durable_to(*caller_of(header)):
            reply.durable_to = durable_to
        if header.durable_to > durable_to:
            self.hurry()

    def has_recorded(self, trainer: int) -> bool:
        """True if the COMPLETE of a trainer is durable; else a local cut is written soon."""
        is_recorded = self.progress.has_recorded(trainer)
        if not is_recorded:
            self.hurry()
        return is_recorded

    def hurry(self) -> None:
        """Write a local cut soon, and a part under way at once: a trainer waits for it."""
        self.on_hurry()
        if self._writer is not None:
            self._writer.ask()

    def describe(self, state: PserverState, now: float) -> dict[str, Any]:
        """Facts for STATUS."""
        problem = self._writer.problem if self._writer is not None else ""
        last_cut_age_s = None if self._last_cut_s is None else round(now - self._last_cut_s, 3)
        return {
            **self.progress.describe(state, now),
            "is_durable": self.is_durable,
            "durable_problem": problem,
            "last_cut_age_s": last_cut_age_s,
        }

    def _began(self, beginning: dict[str, Any]) -> dict[str, Any]:
        """Facts of a local cut before the first push; there are no tables yet."""
        return self._ask(lambda state, now: self._facts(state)) | beginning

    def _ask(self, question: Callable[[PserverState, float], _T]) -> _T:
        assert self._runner is not None, "a pserver that makes cuts has given it"
        return self._runner.ask(question)

    def _confirm(self, point: DurablePoint) -> None:
        with self._confirming:
            self.progress.confirm(point, self._clock.now())
        if self._served is not None:
            self._served.forget_beginning()

    def _facts(self, state: PserverState) -> dict[str, Any]:
        specs = [table.spec for table in self._tables.all()]
        facts = {"index": self._index, "began_at": self.began_at}
        return {**facts, **local_facts(state, self._process, self._incarnation, specs)}
