"""Decisions of a launcher: the reaction to the end of a process, and the end of the launch.

Pure: events come in with a time (`exited`, `interrupted`, …), instructions come out; this module
does not start, signal or wait for processes. The phases of a job:

    STARTING   pservers were started; a pserver that ends now, with any code, fails the job
    TRAINING   trainers were started; a non-zero exit fails the job, and so does a pserver that
               ended well if trainers run on for longer than `outlived_s`
    DRAINING   every trainer ended with 0; pservers end by themselves within the grace
    LEAVING    a signal came and the job makes cuts: trainers were asked to end, at a cut
    STOPPING   running processes were asked to end, and are killed after the grace
    ENDED      no process runs; `outcome` is the result
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from psrt.launch.plan import PSERVER, TRAINER, ChildId, Plan

STANDBY_AFTER_S = 5.0
"""Time between the start of training, or a recovery, and that of a process that stands by: its
start takes seconds of a core, which others need then."""


class Phase(enum.Enum):
    STARTING = enum.auto()
    TRAINING = enum.auto()
    DRAINING = enum.auto()
    LEAVING = enum.auto()
    STOPPING = enum.auto()
    ENDED = enum.auto()


@dataclass(frozen=True)
class Terminate:
    """Ask these processes to end."""

    children: tuple[ChildId, ...]


@dataclass(frozen=True)
class Kill:
    """End these processes now."""

    children: tuple[ChildId, ...]


@dataclass(frozen=True)
class Recover:
    """Start a killed process again: a pserver at its endpoint, where it goes on from the newest
    cut; a trainer, which goes on behind its last step."""

    child: ChildId


@dataclass(frozen=True)
class Start:
    """Start these trainers: the job goes on with more of them."""

    children: tuple[ChildId, ...]


@dataclass(frozen=True)
class StandBy:
    """Start a process that waits to take the place of a killed pserver."""


Instruction = Terminate | Kill | Recover | StandBy


@dataclass(frozen=True)
class Outcome:
    """The result of a job: at most one of `culprit` and `signal` is set; neither means success.

    `culprit` is the process whose end failed the job and `code` its exit code (−n = signal n).
    """

    culprit: ChildId | None = None
    code: int = 0
    signal: int | None = None


class Supervisor:
    """The phases of one job. `cut_s` is the time that a cut may take, 0 = the job makes none.

    A job that failed makes no further cut, so its other processes have no time for one.

    In TRAINING, `deadline` is set exactly when a pserver has ended (`_gone`). In ENDED no process
    runs. A pserver that a signal kills in TRAINING is recovered, up to `recoveries` times for all,
    and a trainer up to `restarts` times, while no pserver has ended. With `stands_by` one process
    is kept that is ready for the next recovery. Trainers may run on for `outlived_s` after a
    pserver has ended well: ranks of a script evaluate and save then, for any time.
    """

    def __init__(
        self,
        grace_s: float,
        cut_s: float = 0.0,
        recoveries: int = 0,
        restarts: int = 0,
        stands_by: bool = False,
        outlived_s: float = Plan.outlived_s,
    ) -> None:
        self._grace_s, self._cut_s, self._outlived_s = grace_s, cut_s, outlived_s
        self._living: set[ChildId] = set()
        self.phase = Phase.STARTING
        self.outcome = Outcome()
        self.deadline: float | None = None
        self._gone: ChildId | None = None
        self._left = {PSERVER: recoveries, TRAINER: restarts}
        self._stands_by = stands_by
        self._standby_due_s: float | None = None
        self._has_standby = False

    def started(self, child: ChildId) -> None:
        self._living.add(child)
        if child.role == TRAINER:
            self.phase = Phase.TRAINING

    def exited(self, child: ChildId, code: int, now: float) -> list[Instruction]:
        """Record the end of a process. The first failure decides the outcome; others follow it."""
        self._living.discard(child)
        if self.phase is Phase.STOPPING:
            return self._end_if_empty()
        if self.phase is Phase.LEAVING:
            if child.role == PSERVER and code != 0:
                return self._stop(now)
            return [] if self._trainers_live() else self._stop(now, self._cut_s)
        if code < 0 and self._may_recover(child):
            self._left[child.role] -= 1
            if child.role == PSERVER:
                self._has_standby, self._standby_due_s = False, now + STANDBY_AFTER_S
            return [Recover(child)]
        if code != 0 or self.phase is Phase.STARTING:
            self.outcome = Outcome(culprit=child, code=code)
            return self._stop(now)
        if self.phase is Phase.TRAINING and not self._trainers_live():
            self.phase, self.deadline = Phase.DRAINING, now + self._grace_s + self._cut_s
        elif self.phase is Phase.TRAINING and child.role == PSERVER and self._gone is None:
            self._gone, self.deadline = child, now + self._outlived_s
        return self._end_if_empty()

    def interrupted(self, signal: int, now: float) -> list[Instruction]:
        """Stop after a signal to the launcher; a second signal kills at once.

        Where cuts are made, pservers are asked to end after the trainers.
        """
        if self.phase in (Phase.LEAVING, Phase.STOPPING):
            return self._kill()
        self.outcome = Outcome(signal=signal)
        if self._cut_s and self.phase is Phase.TRAINING:
            self.phase, self.deadline = Phase.LEAVING, now + self._grace_s + self._cut_s
            return [Terminate(tuple(sorted(c for c in self._living if c.role == TRAINER)))]
        return self._stop(now, self._cut_s)

    def resized(self, trainers: int) -> list[Start]:
        """The trainers to start when the job goes on with `trainers`; others end by themselves."""
        if self.phase not in (Phase.TRAINING, Phase.DRAINING):
            return []
        wanted = (ChildId(TRAINER, index) for index in range(trainers))
        missing = tuple(child for child in wanted if child not in self._living)
        if missing and self.phase is Phase.DRAINING:
            self.deadline = None
        return [Start(missing)] if missing else []

    def give_up(self, now: float) -> list[Instruction]:
        """Stop for a reason that the launcher itself reports."""
        return self._stop(now)

    def tick(self, now: float) -> list[Instruction]:
        """Apply deadlines, and keep a process that stands by."""
        if self.deadline is None or now < self.deadline:
            return self._stand_by(now)
        if self.phase is Phase.TRAINING:
            self.outcome = Outcome(culprit=self._gone)
        return self._kill() if self.phase is Phase.STOPPING else self._stop(now)

    def standby_ended(self) -> None:
        """Record that the process that stood by has ended by itself: another would, too."""
        self._stands_by = False

    def _stand_by(self, now: float) -> list[Instruction]:
        """Start a process that stands by once it is due."""
        is_wanted = self._stands_by and not self._has_standby and self._left[PSERVER] > 0
        if self.phase is not Phase.TRAINING or not is_wanted:
            return []
        if self._standby_due_s is None:
            self._standby_due_s = now + STANDBY_AFTER_S
        if now < self._standby_due_s:
            return []
        self._has_standby = True
        return [StandBy()]

    def _may_recover(self, child: ChildId) -> bool:
        is_running = self.phase is Phase.TRAINING
        return is_running and self._gone is None and self._left[child.role] > 0

    def _trainers_live(self) -> bool:
        return any(child.role == TRAINER for child in self._living)

    def _stop(self, now: float, cut_s: float = 0.0) -> list[Instruction]:
        """Ask all to end, and give pservers `cut_s` more for a cut under way."""
        if not self._living:
            return self._end_if_empty()
        self.phase, self.deadline = Phase.STOPPING, now + self._grace_s + cut_s
        return [Terminate(tuple(sorted(self._living)))]

    def _kill(self) -> list[Instruction]:
        self.phase, self.deadline = Phase.STOPPING, None
        return [Kill(tuple(sorted(self._living)))]

    def _end_if_empty(self) -> list[Instruction]:
        if not self._living:
            self.phase, self.deadline = Phase.ENDED, None
        return []
