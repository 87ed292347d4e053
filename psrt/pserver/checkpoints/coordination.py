"""The coordinator of a job in its first pserver: calls that wait, and a timer.

Handler threads call `watch`, `request` and `part`; a thread proposes cuts that are due and ends
waits. All decisions are those of `CutCoordinator`, under one lock.
"""

from __future__ import annotations

import json
import logging
import math
import threading
from collections.abc import Callable, Sequence

from psrt.coordinator.coordinator import CutCoordinator
from psrt.coordinator.instructions import Announce, Commit, CutInstruction, Discard, Done
from psrt.coordinator.term import Term
from psrt.core.clock import Clock
from psrt.core.errors import PsrtError
from psrt.core.failpoints import reach
from psrt.core.threads import CrashReport, start_thread
from psrt.pserver.checkpoints import term_file
from psrt.pserver.checkpoints.coordinated_cuts import CoordinatedCuts
from psrt.pserver.checkpoints.cut_history import CutHistory
from psrt.pserver.checkpoints.cutting import Settings
from psrt.pserver.checkpoints.saved_cut import complete_cuts
from psrt.pserver.checkpoints.stored_cuts import files_by_cut
from psrt.pserver.checkpoints.waiting_caller import WaitingCaller

log = logging.getLogger("psrt.pserver")

CHECK_S = 0.1
"""Seconds between two checks of the schedule and of waits."""


class Coordination:
    """Cuts of one job, whose pservers are `endpoints`; `steps()` counts rounds or mini-batches.

    `term` is taken already by a process that goes on for a killed one. `history` records cuts that
    were given up.
    """

    def __init__(
        self,
        settings: Settings,
        endpoints: Sequence[str],
        clock: Clock,
        steps: Callable[[], int],
        crashes: CrashReport,
        term: Term | None = None,
        history: CutHistory | None = None,
    ) -> None:
        self._directory, self._clock = settings.directory, clock
        self._history = history or CutHistory()
        self._files = CoordinatedCuts(settings, endpoints, term)  # takes a term; then lists cuts
        newest = max(files_by_cut(settings.directory), default=0)
        complete = max(complete_cuts(settings.directory), default=0)
        self._cuts = CutCoordinator(
            tuple(endpoints), settings.schedule, settings.timeout_s, newest, steps, complete
        )
        self._lock = threading.Lock()
        self._watches: list[WaitingCaller] = []
        self._stopped = threading.Event()
        start_thread(self._tick, "cuts", crashes)

    @property
    def proposed(self) -> int:
        """The number of the proposed cut, 0 = none."""
        return self._cuts.proposed

    def trainers_from(self, number: int) -> int:
        """The number of trainers from cut `number` on, 0 = it stays, or it is not proposed."""
        with self._lock:
            return self._cuts.trainers if self._cuts.proposed == number else 0

    @property
    def has_parts(self) -> bool:
        """True while a cut has some of its parts, so that the others are about to come."""
        return self._cuts.has_parts

    @property
    def complete(self) -> int:
        """The newest complete cut in the directory, 0 = none."""
        return self._cuts.complete

    @property
    def newest(self) -> int:
        """The newest cut that was proposed, or has files in the directory."""
        return self._cuts.newest

    def keep(self, number: int) -> None:
        """Keep the cut that trainers begin with from now on, 0 = none."""
        self._files.keep(number)

    def seen(self, number: int) -> None:
        """Number later cuts above `number`: a trainer has seen it proposed."""
        with self._lock:
            self._cuts.newest = max(self._cuts.newest, number)

    def watch(self, known: int, deadline_s: float) -> WaitingCaller:
        """A caller that is answered when a newer cut than `known` is proposed, or at its end."""
        caller = WaitingCaller(deadline_s, known)
        with self._lock:
            self._watches.append(caller)
            instructions = self._cuts.watch(caller, known)
        self._execute(instructions)
        return caller

    def request(self, trainers: int = 0, anew: bool = False) -> WaitingCaller:
        """A caller that is answered when a cut proposed now is complete, or fails with its error.

        The cut under way is one, too, unless `anew`. With `trainers` the job goes on from it with
        this number of trainers.
        """
        caller = WaitingCaller(0.0)
        with self._lock:
            instructions = self._cuts.request(caller, self._clock.now(), trainers, anew)
        self._execute(instructions)
        return caller

    def give_up_changes(self, why: str) -> None:
        """Give up changes of the number of trainers."""
        with self._lock:
            instructions = self._cuts.give_up_changes(why)
        self._execute(instructions)

    def part(self, number: int, endpoint: str, record: str, problem: str) -> WaitingCaller:
        """Record that a pserver wrote its part, or why it did not.

        Number 0 is the cut under way: a pserver that was started again has no part of it. Returns
        a caller that is answered when the cut is complete, or fails with its error; at once if
        there is a problem, by number 0 with that of the cut under way, or of the newest one.
        """
        caller = WaitingCaller(math.inf)
        read = {} if problem else json.loads(record)
        with self._lock:
            number = number or self._cuts.proposed or self._cuts.newest
            if problem:
                instructions = self._cuts.no_part(number, f"{endpoint}: {problem}")
            else:
                participants, base = json.dumps(read["participants"]), read["base"]
                instructions = self._cuts.part(number, endpoint, record, participants, base, caller)
        self._execute(instructions)
        if problem:
            caller.answer(number)
        return caller

    def finish(self, timeout_s: float) -> bool:
        """Wait for the other parts of a cut that has some; False at the deadline."""
        ends_s = self._clock.now() + timeout_s
        while self.has_parts and self._clock.now() < ends_s:
            self._stopped.wait(CHECK_S)
        return not self.has_parts

    def release(self) -> None:
        """Answer those that wait for a proposal: none will come."""
        with self._lock:
            watches, self._watches = self._watches, []
            for caller in watches:
                self._cuts.unwatch(caller)
        for caller in watches:
            caller.answer(caller.number)

    def stop(self) -> None:
        """End the thread; callers that wait are answered."""
        self._stopped.set()
        with self._lock:
            instructions = self._cuts.end("the pserver is shutting down")
        self.release()
        self._execute(instructions)
        if not self._cuts.proposed:  # else a manifest is under way
            self._files.close(self._cuts.newest)

    def _tick(self) -> None:
        while not self._stopped.wait(CHECK_S):
            now = self._clock.now()
            with self._lock:
                instructions = self._cuts.tick(now)
                late = [each for each in self._watches if each.deadline_s <= now]
                waiting = (each for each in self._watches if not each.future.done())
                self._watches = [each for each in waiting if each.deadline_s > now]
                for caller in late:
                    self._cuts.unwatch(caller)
            for caller in late:
                caller.answer(caller.number)
            self._execute(instructions)

    def _execute(self, instructions: Sequence[CutInstruction]) -> None:
        for instruction in instructions:
            match instruction:
                case Announce(call, number, trainers):
                    call.trainers = trainers
                    call.answer(number)
                case Commit():
                    self._execute(self._commit(instruction))
                case Discard(number, why):
                    log.warning("cut %d was given up: %s", number, why)
                    self._history.given_up(number, why)
                    self._files.remove(number)
                case Done(call, number, error):
                    call.answer(number, error)

    def _commit(self, commit: Commit) -> list[CutInstruction]:
        number, is_written = commit.number, False
        try:
            self._files.check_term()
            reach("cut.before_manifest")
            self._files.commit(commit)
            is_written = True
            self._files.check_term()
        except PsrtError as error:
            return self._not_committed(number, error, is_written)
        log.info("cut %d is complete in %s", number, self._directory.location)
        with self._lock:
            instructions = self._cuts.committed(number)
        self._files.remove_old()
        return instructions

    def _not_committed(
        self, number: int, error: PsrtError, is_written: bool
    ) -> list[CutInstruction]:
        """End a cut without a manifest, or with one that this process may not report."""
        is_superseded = isinstance(error, term_file.SupersededError)
        with self._lock:
            if not (is_superseded or is_written):
                return self._cuts.failed(number, str(error))
            instructions = self._cuts.left_open(number, error, is_superseded)
        log.warning("it is unknown whether cut %d is complete: %s", number, error)
        return instructions
