"""Cuts at moments of a pserver's life: on a signal, before its end, at the end of its job.

The first pserver of a job coordinates its cuts, so the others ask that one. At the end of a job no
trainer pushes any more, and each pserver freezes its tables by itself, for one and the same cut.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

from psrt.core.clock import Clock
from psrt.core.errors import ErrorCode, JobError, PsrtError
from psrt.core.threads import CrashReport, start_thread
from psrt.pserver.checkpoints import WaitingCaller
from psrt.pserver.decisions import PserverState, describe
from psrt.pserver.serving.cut_calls import CutCalls
from psrt.pserver.serving.effect_runner import EffectRunner
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.dialing import Carrier
from psrt.rpc.methods import TRAINED, Method

log = logging.getLogger("psrt.pserver")

POLL_S = 0.1
"""Seconds between two checks for an end of a wait."""

_LEAST_S = 0.001


class CutMoments:
    """The cuts that one pserver asks for by itself."""

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

    def refuse_without_trainers(self) -> None:
        """Raise `JobError` if a trainer that a cut needs has left, or none has joined."""
        trainers = self._trainers()
        running = [each for each in trainers if each["state"] == "running"]
        gone = [str(each["trainer"]) for each in running if each["presence"] == "gone"]
        if gone:
            raise _no_cut(f"trainer {' and '.join(gone)} left without completing")
        if not running:
            raise _no_cut("no trainer runs")

    def on_request(self) -> None:
        """Ask for a cut, and log its end; returns at once."""
        start_thread(self._on_request, "cut", self._crashes)

    def before_end(self, is_hurried: Callable[[], bool]) -> None:
        """Make a cut while trainers still run: the process is about to end.

        Waits `grace_s`, and no longer than trainers are there and `is_hurried` is not.
        """
        if self._cuts.settings is None or not self._cuts.first or self._none_runs():
            return
        log.info("asks for a cut before it ends")
        try:
            self.refuse_without_trainers()
            self._await(self._request(), is_hurried)
        except PsrtError as error:
            log.warning("it ends without a cut: %s", error.message)

    def finish(self, is_hurried: Callable[[], bool]) -> None:
        """Wait for a cut that is being written: for the part of this pserver, and on the first one
        for those of all."""
        grace_s = 0.0 if self._cuts.settings is None else self._cuts.settings.grace_s
        deadline_s = self._clock.now() + grace_s
        while not self._cuts.finish(POLL_S):
            if is_hurried() or self._clock.now() >= deadline_s:
                log.warning("a cut was not written within %.0f s and is given up", grace_s)
                return

    def at_job_end(self, error: PsrtError | None, then: Callable[[], None]) -> None:
        """Make the cut at the end of a job that ended well, then call `then`; returns at once if
        there is something to wait for."""
        settings = self._cuts.settings
        if error is not None or settings is None or not (settings.at_end and self._cuts.first):
            self._cuts.job_ended()
            then()
            return

        def run() -> None:
            try:
                self._at_job_end()
            except PsrtError as failure:
                log.warning("the job ends without a cut: %s", failure.message)
            finally:
                self._cuts.job_ended()
                then()

        start_thread(run, "last cut", self._crashes)

    # --- the end of a job ------------------------------------------------------------------------

    def _at_job_end(self) -> None:
        if self._cuts.coordination is None:
            self._follow()
        elif self._all_have_trained():
            self._lead()
        else:
            log.info("no cut at the end of the job: it ended before its trainers had trained")

    def _lead(self) -> None:
        """Propose the cut, write a part of it, wait for the others."""
        first = self._cuts.coordination
        assert first is not None
        caller, number = first.request(), first.proposed
        if number and number <= self._frozen_number():  # it began before the last step
            self._await(caller, _never, _never)
            caller, number = first.request(), first.proposed
        self._freeze(number)
        self._await(caller, _never, _never)

    def _follow(self) -> None:
        """Write a part of the cut that the first pserver proposes; it ends if it proposes none."""
        deadline_s = self._clock.now() + self._grace_s
        known, number = self._frozen_number(), 0
        while number <= known and (left_s := deadline_s - self._clock.now()) > 0:
            header = pb.Header(cut=pb.Cut(number=known))
            number = self._ask_first(Method.WATCH, header, left_s)
        if number > known:
            self._freeze(number)
            self._cuts.await_ended(max(_LEAST_S, deadline_s - self._clock.now()))

    def _freeze(self, number: int) -> None:
        self._cuts.await_ended(self._grace_s)
        self._runner.decide(lambda state, now: state.cuts.freeze_without_calls(number))

    def _frozen_number(self) -> int:
        return self._runner.ask(lambda state, now: state.cuts.frozen_number)

    def _all_have_trained(self) -> bool:
        """Return True unless a trainer has completed early, because of a signal."""

        def trained(state: PserverState, now: float) -> bool:
            known = {clock["clock"]: clock["reached"] for clock in state.clocks.describe()}
            reached = known.get(TRAINED, [])
            members = state.members
            ended = (m.trainer for m in members.members if members.has_completed(m.trainer))
            return all(trainer < len(reached) and reached[trainer] for trainer in ended)

        return self._runner.ask(trained)

    # --- requests --------------------------------------------------------------------------------

    def _on_request(self) -> None:
        try:
            self.refuse_without_trainers()
            caller = self._request()
            caller.future.result()
        except PsrtError as error:
            log.warning("no cut was made on SIGUSR1: %s", error.message)
        else:
            log.info("cut %d, asked for by SIGUSR1, is complete", caller.number)

    def _request(self) -> WaitingCaller:
        """Ask the coordinator for a cut, or for the one under way, on whichever pserver it is."""
        if self._cuts.coordination is not None:
            return self._cuts.coordination.request()
        settings = self._cuts.settings
        if settings is None:
            raise _no_cut("this pserver has no --checkpoint-dir")
        if not self._cuts.first:
            raise _no_cut("no trainer has joined")
        caller = WaitingCaller(0.0)

        def ask() -> None:
            try:
                caller.answer(self._ask_first(Method.CHECKPOINT, pb.Header(), settings.timeout_s))
            except PsrtError as error:
                caller.answer(0, error)

        start_thread(ask, "cut", self._crashes)
        return caller

    def _ask_first(self, method: Method, header: pb.Header, timeout_s: float) -> int:
        """Call the first pserver of the job; returns the number of a cut in its reply."""
        client = Client(self._cuts.first, 0, 1, self._carrier, pb.Hello())
        client.hurry()  # one that has ended does not come back
        try:
            reply = client.call(method, header=header, timeout_s=max(timeout_s, _LEAST_S))
        finally:
            client.close()
        return int(reply.header.cut.number)

    def _await(
        self,
        caller: WaitingCaller,
        is_hurried: Callable[[], bool],
        is_over: Callable[[], bool] | None = None,
    ) -> None:
        """Wait for a cut, `grace_s` at most; raises the error of a cut that was given up.

        Ends earlier with `is_hurried`, and with `is_over`: by default, when a trainer has left.
        """
        is_over, deadline_s = is_over or self._lacks_trainers, self._clock.now() + self._grace_s
        while True:
            try:
                caller.future.result(POLL_S)
            except FutureTimeoutError:
                if is_hurried() or is_over() or self._clock.now() >= deadline_s:
                    raise _no_cut("it was not complete in time") from None
            else:
                return

    def _lacks_trainers(self) -> bool:
        first = self._cuts.coordination
        if first is not None and first.has_parts:  # trainers took part
            return False
        try:
            self.refuse_without_trainers()
        except PsrtError:
            return True
        return False

    def _none_runs(self) -> bool:
        return all(each["state"] != "running" for each in self._trainers())

    def _trainers(self) -> Sequence[Mapping[str, Any]]:
        found: Sequence[Mapping[str, Any]] = self._runner.ask(
            lambda state, now: describe(state, now)["trainers"]
        )
        return found

    @property
    def _grace_s(self) -> float:
        assert self._cuts.settings is not None
        return self._cuts.settings.grace_s


def _never() -> bool:
    return False


def _no_cut(why: str) -> JobError:
    return JobError(
        f"no cut was made: {why}. Earlier cuts are complete.",
        code=ErrorCode.CUT_GIVEN_UP,
        hint="See the logs of the trainers; a cut needs all that have not completed.",
    )
