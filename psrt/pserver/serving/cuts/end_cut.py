"""The cut at the end of a job, as one of its pservers makes it.

    the last trainer completes ──▶ first pserver: proposes a cut, freezes, waits for all parts
                                   others: ask it for the number, freeze
    the cut is complete or given up ──▶ the job ends once trainers have confirmed that

No trainer pushes any more, so each pserver freezes its tables by itself. Trainers of a durable job
stay until the cut has recorded their end: a pserver that is killed meanwhile is sent the pushes
that it lost, and the cut is made anew.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress

from psrt.core.clock import Clock
from psrt.core.errors import ErrorCode, PsrtError
from psrt.core.threads import CrashReport, start_thread
from psrt.pserver.checkpoints import Coordination
from psrt.pserver.decisions import PserverState
from psrt.pserver.serving.cuts.cut_calls import CutCalls
from psrt.pserver.serving.cuts.cut_requests import ask_first, await_cut
from psrt.pserver.serving.effect_runner import EffectRunner
from psrt.rpc import pb
from psrt.rpc.dialing import Carrier
from psrt.rpc.methods import TRAINED, Method

log = logging.getLogger("psrt.pserver")

NOT_TRAINED = "the job has ended before its trainers had trained"

PAUSE_S = 0.25
"""Seconds before an attempt that failed is repeated."""


class EndCut:
    """Makes the cut when all trainers have completed; any thread calls this."""

    def __init__(
        self,
        cuts: CutCalls,
        runner: EffectRunner,
        clock: Clock,
        crashes: CrashReport,
        carrier: Carrier,
    ) -> None:
        self._cuts, self._runner, self._clock = cuts, runner, clock
        self._crashes, self._carrier = crashes, carrier
        self.is_made = False  # or given up; another one may follow
        self.is_left_out = False  # trainers had not trained: no pserver is to wait for a proposal
        self._wanted = 0  # cuts to make, the present one among them; guarded by the runner's lock
        self._changed = threading.Condition()

    @property
    def is_recording(self) -> bool:
        """True from the end of the last trainer until the cut is complete or given up."""
        return self._wanted > 0

    def completed(self) -> bool:
        """Begin the cut, as all trainers have completed now; called with the runner's lock held.

        False if it is too early: no trainer has registered at a recovered pserver yet.
        """
        settings = self._cuts.settings
        if settings is None or not settings.at_end:
            return True
        if not self._cuts.first:
            return False
        self._wanted, self.is_made, self.is_left_out = self._wanted + 1, False, False
        if self._wanted == 1:
            start_thread(self._run, "last cut", self._crashes)
        return True

    def afterwards(self, then: Callable[[], None]) -> None:
        """Call `then` once no cut is to be made: at once, or on another thread.

        Until then processes that come for a trainer find that it has completed.
        """

        def end() -> None:
            self._runner.ask(lambda state, now: state.members.lineages.job_ended())
            then()

        if not self.is_recording:
            end()
            return

        def wait() -> None:
            with self._changed:
                self._changed.wait_for(lambda: not self.is_recording)
            end()

        start_thread(wait, "end of job", self._crashes)

    # --- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            try:
                self._make()
            except PsrtError as error:
                log.warning("the job ends without a cut: %s", error.message)
            finally:
                is_done = self._runner.ask(self._made)
                with self._changed:
                    self._changed.notify_all()
                first = self._cuts.coordination
                if first is not None and is_done and self._cuts.durability.is_replicated:
                    first.release()  # a part that was taken over may wait
            if is_done:
                return

    def _made(self, state: PserverState, now: float) -> bool:
        """Record the end of an attempt; return True if no other is to be made."""
        self._wanted -= 1
        self.is_made = not self._wanted
        return self.is_made

    def _make(self) -> None:
        assert self._cuts.settings is not None
        deadline_s = self._clock.now() + self._cuts.settings.grace_s
        if not self._runner.ask(lambda state, now: state.members.ended()):
            return  # a trainer was started again meanwhile
        first = self._cuts.coordination
        if first is None:
            self._follow(deadline_s)
        elif self._runner.ask(_all_have_trained):
            self._lead(first, deadline_s)
        else:
            log.info("no cut was made: %s", NOT_TRAINED)
            self.is_left_out = True
            first.release()

    def _lead(self, first: Coordination, deadline_s: float) -> None:
        """Propose a cut, write a part, wait for the others; again while trainers wait for it."""
        while True:
            try:
                self._lead_one(first, deadline_s)
            except PsrtError as error:
                if not self._may_repeat(deadline_s):
                    raise
                log.info("makes the cut at the end of the job again: %s", error.message)
                self._pause()
            else:
                return

    def _lead_one(self, first: Coordination, deadline_s: float) -> None:
        first.give_up_changes("all trainers have completed")
        caller, number = first.request(), first.proposed
        while number <= self._frozen_number() and self._clock.now() < deadline_s:
            with suppress(PsrtError):  # it began before the last push
                await_cut(caller, self._clock, deadline_s)
            caller, number = first.request(), first.proposed
        self._freeze(number, deadline_s)
        await_cut(caller, self._clock, deadline_s)

    def _follow(self, deadline_s: float) -> None:
        """Write a part of the cut that the first pserver proposes, or of one after it."""
        known = self._frozen_number()
        while (left_s := deadline_s - self._clock.now()) > 0:
            try:
                header = pb.Header(cut=pb.Cut(number=known))
                found = ask_first(self._cuts.first, self._carrier, Method.WATCH, header, left_s)
            except PsrtError as error:
                if error.code is ErrorCode.CUT_GIVEN_UP or not self._may_repeat(deadline_s):
                    raise
                self._pause()
                continue
            if found.number <= known:  # the first pserver ends, or proposed none in time
                continue
            known = number = found.number
            if found.trainers:  # no trainer is left that could take part; it is given up
                continue
            self._freeze(number, deadline_s)
            self._cuts.await_ended(max(0.0, deadline_s - self._clock.now()))
            if self._cuts.newest_complete >= number or not self._may_repeat(deadline_s):
                return

    def _freeze(self, number: int, deadline_s: float) -> None:
        """Freeze the tables for a cut once the cut before is written and no sweep is under way."""
        while (left_s := deadline_s - self._clock.now()) > 0:
            self._cuts.await_ended(left_s)
            self._runner.decide(lambda state, now: state.cuts.freeze_without_calls(number))
            if self._frozen_number() >= number:
                return
            self._pause()

    def _frozen_number(self) -> int:
        return self._runner.ask(lambda state, now: state.cuts.frozen_number)

    def _may_repeat(self, deadline_s: float) -> bool:
        """Return True while trainers stay for the cut.

        With backups there is one attempt: a first pserver that has failed over makes no cuts.
        """
        if self._cuts.durability.is_replicated:
            return False
        stays = self._runner.ask(lambda state, now: state.members.lingers_until() is not None)
        return stays and self._clock.now() < deadline_s

    def _pause(self) -> None:
        with self._changed:
            self._changed.wait(PAUSE_S)


def _all_have_trained(state: PserverState, now: float) -> bool:
    """Return True unless a trainer has completed early, because of a signal."""
    members, trained = state.members, state.clocks.at(TRAINED, 1)
    ended = (each.trainer for each in members.members if members.has_completed(each.trainer))
    return all(trainer in trained for trainer in ended)
