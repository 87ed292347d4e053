"""The cuts of one pserver: its place in the job, CUT, and the part that it writes.

The first pserver of a job coordinates its cuts; every pserver writes its own part.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from psrt.coordinator.part_chain import PartOutcome
from psrt.core.clock import Clock
from psrt.core.errors import JobError
from psrt.core.specs import Geo
from psrt.core.threads import CrashReport, start_thread
from psrt.pserver.checkpoints import (
    Coordination,
    Cutting,
    RecoveredPart,
    SavedCut,
    Settings,
    find_cut,
)
from psrt.pserver.decisions import Freeze, PserverState, WaitingCall
from psrt.pserver.eviction import Upkeep
from psrt.pserver.serving.cuts.cut_requests import coordinator, cut_reply, not_first
from psrt.pserver.serving.cuts.part_reports import RESTARTED, PartReports
from psrt.pserver.serving.cuts.resuming import Resuming
from psrt.pserver.serving.cuts.state_pages import NOBODY, StateCalls, senders_of_states
from psrt.pserver.serving.durable import Durability, beginning_with, part_facts
from psrt.pserver.serving.effect_runner import EffectRunner, PendingReply
from psrt.pserver.serving.request_headers import Found, caller_of, number_in
from psrt.pserver.tables import TableRegistry
from psrt.rpc import pb
from psrt.rpc.dialing import Carrier
from psrt.rpc.serving import Later, deadline_of
from psrt.rpc.wire import Message

OnEnded: TypeAlias = Callable[[int, PartOutcome], None]
"""Called with the number of a cut that this pserver has a part of, and what became of it."""


class CutCalls:
    """The cuts of one pserver; `settings` None = it makes none.

    `resumed` is the cut that its tables begin with, `recovered` the part that they go on from in a
    running job; one that `takes_over` goes on with tables of its own. `incarnation` is that of the
    tables, `name` that of the pserver in the directory.
    """

    name = ""

    def __init__(
        self,
        settings: Settings | None,
        resumed: SavedCut | None,
        incarnation: int,
        tables: TableRegistry,
        upkeep: Upkeep,
        clock: Clock,
        crashes: CrashReport,
        carrier: Carrier = "stream",
        recovered: RecoveredPart | None = None,
        takes_over: bool = False,
    ) -> None:
        self.durability = Durability(tables, incarnation, recovered, clock, crashes)
        self._is_beginning = recovered is None or recovered.is_beginning
        if recovered is not None:  # the running job may have begun with another cut, or anew
            resumed = recovered.cut if recovered.is_beginning else None
        if resumed is not None:
            self.durability.began_at = resumed.number
        self.settings, self.resumed, self._incarnation = settings, resumed, incarnation
        self.resuming = Resuming(resumed)
        self._recovered, self._tables = recovered, tables
        self._goes_on = takes_over or recovered is not None
        self._clock, self._crashes, self._joining = clock, crashes, threading.Lock()
        self._reports = PartReports(carrier, incarnation)
        self._endpoints: tuple[str, ...] = ()
        self._coordination: Coordination | None = None
        of_parts = tables, upkeep, crashes, self._written, clock
        self._cutting = None if settings is None else Cutting(settings, *of_parts)
        self.durability.on_hurry = self.hurry
        self.states = StateCalls(self._cutting, resumed)
        self._on_ended: OnEnded = lambda number, outcome: None

    # --- the job ---------------------------------------------------------------------------------

    @property
    def begins_with(self) -> SavedCut | None:
        """The cut, or the part of one, that new tables are filled from."""
        return self._recovered.cut if self._recovered is not None else self.resumed

    def run_by(self, runner: EffectRunner, on_ended: OnEnded) -> None:
        """Take local cuts between updates of this runner; pass the ends of cuts to `on_ended`."""
        self._on_ended, self._runner = on_ended, runner
        if self.settings is not None:
            self.durability.write_to(self.settings, runner)

    def joins(self, found: Found, register: pb.Register) -> None:
        """Record a trainer that joins, before this pserver has tables for it."""
        mine = number_in(found, self._incarnation)
        if self.settings is not None and self.name and mine is not None:
            may_begin = self._is_beginning and self.durability.is_asked
            beginning = beginning_with(register, self.resumed) if may_begin else None
            self.durability.joins(self.settings, self.name, mine, beginning)

    def joined(self, found: Found, steps: Callable[[], int]) -> None:
        """Take the place of this pserver among those that a trainer found; called repeatedly."""
        mine = number_in(found, self._incarnation)
        with self._joining:
            if self.settings is None or self._cutting is None or self._endpoints or mine is None:
                return
            self._cutting.index, endpoints = mine, tuple(endpoint for endpoint, _ in found)
            if self.name and not self.durability.is_replicated:
                self.durability.begin(self.settings, self.name)
            if mine == 0:
                given = endpoints, self._clock, steps, self._crashes, self._cutting.history
                self._coordination = coordinator(self.settings, *given, self._recovered)
                self._keep_beginning()
                if self._is_beginning and self.durability.is_asked:
                    self._coordination.request()
            self._endpoints = endpoints  # last: the end of the job then asks the coordinator
            if mine and self._goes_on:
                start_thread(partial(self._restarted, endpoints[mine]), "cuts", self._crashes)

    def rejoined(self, header: pb.Header) -> None:
        """Record what a trainer that has sent its pushes again has seen of cuts."""
        if self._coordination is not None:
            self._coordination.seen(header.cut.number)

    def job_ended(self) -> None:
        """Forget that this pserver serves a job: nothing is left to recover."""
        if self._endpoints:
            self.durability.job_ended()

    def beginning_of(self, trainer: int, trainers: int) -> pb.Cut:
        """The cut that the tables began with, and where `trainer` goes on; number 0 = none."""
        beginning = self.resuming.beginning_of(trainer, trainers)
        beginning.newest = self._coordination.newest if self._coordination is not None else 0
        return beginning

    def begin_from(self, number: int, joined: Mapping[int, int] = NOBODY) -> None:
        """Let trainers go on from a complete cut, whose tables this pserver holds."""
        assert self.settings is not None, "a pserver with a part of a cut has a directory"
        self.began_with(find_cut(self.settings.directory, str(number)), joined)

    def began_with(self, cut: SavedCut, joined: Mapping[int, int] = NOBODY) -> None:
        """Let trainers go on from `cut`; those that have `joined`, incarnations by number, do."""
        self.resumed, self.resuming = cut, Resuming(cut)
        self.durability.began_at = cut.number
        self.states = StateCalls(self._cutting, cut, joined)
        self._keep_beginning()

    def trainers_from(self, number: int) -> int:
        """The number of trainers from the proposed cut `number` on; 0 = it stays, or elsewhere."""
        return self._coordination.trainers_from(number) if self._coordination is not None else 0

    @property
    def proposed(self) -> int:
        return self._coordination.proposed if self._coordination is not None else 0

    @property
    def complete(self) -> int:
        """The newest complete cut, 0 = none; at the first pserver only."""
        return self._coordination.complete if self._coordination is not None else 0

    @property
    def newest_complete(self) -> int:
        """The newest cut with a part of this pserver that is complete for certain, 0 = none."""
        return self._cutting.complete if self._cutting is not None else 0

    def describe(self) -> dict[str, Any] | None:
        """Facts for STATUS; None if this pserver makes no cuts."""
        known = {"complete": self.complete or self.newest_complete, "proposed": self.proposed}
        return None if self._cutting is None else known | self._cutting.history.describe()

    @property
    def first(self) -> str:
        """Endpoint of the first pserver of the job; empty before a trainer has registered."""
        return self._endpoints[0] if self._endpoints else ""

    @property
    def followers(self) -> Sequence[str]:
        """Endpoints of the other pservers of the job, except the first one."""
        mine = self._cutting.index if self._cutting is not None else 0
        return [each for index, each in enumerate(self._endpoints) if index not in (0, mine)]

    @property
    def coordination(self) -> Coordination | None:
        """The coordinator, on the first pserver of a job that makes cuts."""
        return self._coordination

    def coordinating(self, header: pb.Header) -> Coordination:
        """The coordinator; raises `ConfigError` on another pserver."""
        if self._coordination is None:
            raise not_first(header)
        return self._coordination

    def await_ended(self, timeout_s: float) -> bool:
        """Wait until the cut of the newest part is complete or given up; False at the deadline."""
        self.hurry()
        return self._cutting is None or self._cutting.wait(timeout_s)

    def hurry(self, for_s: float = 0.0) -> None:
        """Write the part under way, and those that begin within `for_s`, as fast as possible."""
        if self._cutting is not None:
            self._cutting.hurry(for_s)

    def finish(self, timeout_s: float) -> bool:
        """Wait like `await_ended`, for a local cut, and on the first pserver for other parts."""
        self._reports.hurry()
        is_done = self.await_ended(timeout_s) and self.durability.finish(timeout_s)
        return is_done and (self._coordination is None or self._coordination.finish(timeout_s))

    def stop(self) -> None:
        """End the thread of the coordinator, and waits for trainer states."""
        self.durability.stop()
        if self._cutting is not None:
            self._cutting.states.stop()
        if self._coordination is not None:
            self._coordination.stop()

    def left(self, trainer: int) -> None:
        """Wait no longer for the state of a trainer that has completed or is lost."""
        if self._cutting is not None:
            self._cutting.states.left(trainer)

    # --- methods ---------------------------------------------------------------------------------

    def cut(self, message: Message, runner: EffectRunner) -> Message | Later:
        header, pending = message.header, PendingReply(position=message.header.cut.position)
        if self._cutting is not None:
            self._cutting.states.superseded(header.cut.number)
        deadline_s = deadline_of(header, self._clock.now())
        call = WaitingCall(*caller_of(header), header.cut.last_push, deadline_s, content=pending)
        cut = header.cut
        runner.decide(lambda state, now: state.cut(call, cut.number, now, cut.trainers))
        return pending.reply(lambda: cut_reply(header.cut.number))

    def freeze(self, freeze: Freeze, state: PserverState) -> None:
        """Freeze all tables; raises `PsrtError` if that is not possible now."""
        if self._cutting is None or state.job is None:
            raise JobError("this pserver has no directory of checkpoints.")
        if self._tables.loading:
            raise JobError("tables of this pserver are still being loaded.")
        specs = [table.spec for table in self._tables.all()]
        others = self.resuming.positions_of(state.members.members, state.job.trainers)
        facts = part_facts(state, freeze, others, self._incarnation, specs)
        facts |= self.durability.frozen(state, freeze.number, self._clock.now())
        facts |= {"resized_to": state.cuts.trainers} if state.cuts.trainers else {}
        processes, late = NOBODY, None
        if isinstance(state.job.mode, Geo):
            mine, of = self._cutting.index, max(len(self._endpoints), 1)
            processes = senders_of_states(freeze.calls, mine, of)
            late = self.resuming.late_states(state.members.members, state.job.trainers, mine, of)
        is_paced = bool(freeze.calls) and not state.cuts.trainers
        self._cutting.freeze(freeze.number, facts, processes, is_paced, late)

    def no_part(self, number: int, why: str) -> None:
        """Start to report that this pserver has given up cut `number`."""
        if self._endpoints:
            start_thread(partial(self._written, number, "", why), "cuts", self._crashes)

    # --- inside ----------------------------------------------------------------------------------

    def _keep_beginning(self) -> None:
        """Let no retention delete the cut that late trainers begin with."""
        if self._coordination is not None:
            self._coordination.keep(self.resuming.kept(self.durability.is_durable))

    def _restarted(self, endpoint: str) -> None:
        """Report that this pserver has no part of the cut under way, and refuse that one."""
        number = self._reports.restarted(self.first, endpoint)
        self._runner.decide(lambda state, now: state.cuts.refuse(number, RESTARTED))

    def _written(self, number: int, record: str, problem: str) -> PartOutcome:
        """Report this pserver's part to the coordinator; returns what became of the cut."""
        assert self._cutting is not None and self.settings is not None  # noqa: PT018
        mine = self._endpoints[self._cutting.index]
        part = pb.CutPart(number=number, endpoint=mine, record=record, problem=problem)
        where = self.first, self._coordination, self.settings
        outcome, why = self._reports.report(part, *where)
        self._cutting.history.ended(number, outcome, why)
        self.durability.ended(number, outcome is PartOutcome.COMPLETE)
        self._on_ended(number, outcome)
        return outcome
