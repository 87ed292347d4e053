"""Cuts at moments of a pserver's life: on a signal, and before the end of its process.

The first pserver of a job coordinates its cuts, so the others ask that one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from psrt.core.clock import Clock
from psrt.core.errors import PsrtError
from psrt.core.threads import CrashReport, start_thread
from psrt.pserver.checkpoints import WaitingCaller
from psrt.pserver.decisions import describe
from psrt.pserver.serving.cuts.cut_calls import CutCalls
from psrt.pserver.serving.cuts.cut_requests import POLL_S, ask_first, await_cut, no_cut
from psrt.pserver.serving.effect_runner import EffectRunner
from psrt.rpc import pb
from psrt.rpc.dialing import Carrier
from psrt.rpc.methods import Method

log = logging.getLogger("psrt.pserver")


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
            raise no_cut(f"trainer {' and '.join(gone)} left without completing")
        if not running:
            raise no_cut("no trainer runs")

    def on_request(self) -> None:
        """Ask for a cut, and log its end; returns at once."""
        start_thread(self._on_request, "cut", self._crashes)

    def hurry(self) -> None:
        """Write cuts as fast as possible for a while: a pserver of the job is about to end."""
        if self._cuts.settings is not None:
            self._cuts.hurry(self._cuts.settings.grace_s)

    def before_end(self, is_hurried: Callable[[], bool]) -> None:
        """Make a cut while trainers still run: the process is about to end.

        Waits `grace_s`, and no longer than trainers are there and `is_hurried` is not.
        """
        if self._cuts.settings is None or not self._cuts.first or self._none_runs():
            return
        log.info("asks for a cut before it ends")
        try:
            self.refuse_without_trainers()
            self._hurry_all()
            self._await(self._request(is_ending=True), is_hurried)
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

    def _hurry_all(self) -> None:
        """Let all pservers write their parts of cuts as fast as possible: this one has little time.

        Returns at once; one that is not reached writes its part at the usual pace. The first one
        is asked with the request for the cut.
        """
        self.hurry()
        for endpoint in self._cuts.followers:
            start_thread(partial(self._ask_to_hurry, endpoint), "hurry", self._crashes)

    def _ask_to_hurry(self, endpoint: str) -> None:
        with suppress(PsrtError):
            header = pb.Header(cut=pb.Cut(hurry=True))
            ask_first(endpoint, self._carrier, Method.CHECKPOINT, header, self._grace_s)

    def _request(self, is_ending: bool = False) -> WaitingCaller:
        """Ask the coordinator for a cut that begins now, on whichever pserver it is."""
        if self._cuts.coordination is not None:
            return self._cuts.coordination.request(anew=True)
        settings = self._cuts.settings
        if settings is None:
            raise no_cut("this pserver has no --checkpoint-dir")
        if not self._cuts.first:
            raise no_cut("no trainer has joined")
        caller = WaitingCaller(0.0)

        def ask() -> None:
            try:
                header = pb.Header(cut=pb.Cut(anew=True, hurry=is_ending))
                asked = Method.CHECKPOINT, header, settings.timeout_s
                caller.answer(ask_first(self._cuts.first, self._carrier, *asked).number)
            except PsrtError as error:
                caller.answer(0, error)

        start_thread(ask, "cut", self._crashes)
        return caller

    def _await(self, caller: WaitingCaller, is_hurried: Callable[[], bool]) -> None:
        """Wait for a cut, `grace_s` at most; ends earlier with `is_hurried`, and when a trainer
        has left."""
        deadline_s = self._clock.now() + self._grace_s
        await_cut(caller, self._clock, deadline_s, partial(self._check, is_hurried))

    def _check(self, is_hurried: Callable[[], bool]) -> None:
        """Raise the reason why a cut under way cannot become complete in time."""
        if is_hurried():
            raise no_cut("a second signal ended the wait")
        first = self._cuts.coordination
        if first is None or not first.has_parts:  # else all trainers have taken part
            self.refuse_without_trainers()

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
