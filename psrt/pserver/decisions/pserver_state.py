"""Everything a pserver decides, as events in and instructions out.

`PserverState` composes the job's identity (fixed by the first HELLO), the membership, the rounds of
Sync, the pushes of the other modes, and the clocks. It opens no socket, starts no thread and reads
no clock: the service calls it under one lock with `now`, and executes what it returns. Whatever the
*caller* did wrong is raised; what concerns other calls that wait is in the instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from psrt.core.errors import ConfigError, ErrorCode, JobError, PsrtError, WireError
from psrt.core.specs import CommunicationMode, Sync, to_json
from psrt.pserver.decisions.buckets import BucketRounds
from psrt.pserver.decisions.calls import Instruction, WaitingCall, Warn
from psrt.pserver.decisions.clocks import Clocks, Meeting
from psrt.pserver.decisions.membership import Membership
from psrt.pserver.decisions.mode_rules import check_mode
from psrt.pserver.decisions.pushes import MOST_STEPS, Pushes

MAX_TRAINERS = 1 << 16


@dataclass(frozen=True)
class JobIdentity:
    """What all processes of a job must agree on."""

    job_id: str
    plan_hash: str
    trainers: int
    mode: CommunicationMode

    def check(self) -> None:
        if not 1 <= self.trainers <= MAX_TRAINERS:
            raise ConfigError(
                f"job {self.job_id!r} has {self.trainers} trainers, not 1 to {MAX_TRAINERS}."
            )
        check_mode(self.mode)


class PserverState:
    """The state of one pserver process; lives as long as the process.

    `trainers` is how many a job must have, 0 = as many as it says. `rounds` is None in the modes
    that push. `is_gone(trainer, incarnation)` says whether that process has no connection left: one
    that is only silent may compute or read for long. `lost` is why a job ended whose last trainers
    left without completing; unlike `aborted` it refuses no process that takes a trainer's place.
    """

    def __init__(
        self,
        wait_timeout_s: float,
        trainers: int = 0,
        is_gone: Callable[[int, int], bool] = lambda trainer, incarnation: False,
    ) -> None:
        self.job: JobIdentity | None = None
        self.members = Membership(0)
        self.rounds: BucketRounds | None = None
        self.pushes = Pushes()
        self.clocks = Clocks(self.members, wait_timeout_s)
        self.aborted: PsrtError | None = None
        self.lost: PsrtError | None = None
        self._trainers = trainers
        self._wait_timeout_s = wait_timeout_s
        self._is_gone = is_gone
        self._looks_s: float | None = None  # when to see whether the awaited are still there
        self._warned: list[int] = []

    # --- events ------------------------------------------------------------------------------

    def expect(self, job: JobIdentity) -> None:
        """Belong to `job` from now on: this pserver was told before its first trainer came."""
        self._begin(job, trainer=0)

    def hello(
        self, trainer: int, incarnation: int, job: JobIdentity, now: float
    ) -> list[Instruction]:
        """A trainer's process introduces itself; repeated for each of its connections."""
        if incarnation == 0:
            raise WireError(
                f"trainer {trainer} said HELLO without an incarnation; it was refused.",
                hint="push_key.incarnation must be a random number drawn when the process starts.",
            )
        if self.job is None:
            self._begin(job, trainer)
        elif job != self.job:
            raise _mismatch(trainer, job, self.job)
        self.raise_if_aborted()
        replaces = self.members.join(trainer, incarnation, now)
        if self._looks_s is None:
            self._looks_s = now + self._wait_timeout_s
        if not replaces:
            return []
        in_round = self.rounds.replaced(trainer) if self.rounds is not None else []
        return self._followed([*in_round, *self.clocks.replaced(trainer)])

    def heard(self, trainer: int, incarnation: int, now: float) -> JobIdentity:
        """A call that waits for nobody, from a process that must be known; the job."""
        self.members_of_job(trainer).heard(trainer, incarnation, now)
        assert self.job is not None
        return self.job

    def reads(self, trainer: int, incarnation: int, now: float, acknowledges: bool) -> None:
        """A PULL; one that `acknowledges` makes the pserver forget, so it must not come late."""
        members = self.members_of_job(trainer)
        (members.running if acknowledges else members.heard)(trainer, incarnation, now)

    def exchange(self, call: WaitingCall, now: float) -> list[Instruction]:
        """One trainer's push for a round of Sync; `call` waits until an instruction names it."""
        members = self.members_of_job(call.trainer)
        if self.rounds is None:
            raise self._wrong_mode("EXCHANGE", "mode Sync")
        self.raise_if_aborted()
        members.running(call.trainer, call.incarnation, now)
        return self.rounds.arrive(call, now)

    def push(self, call: WaitingCall, steps: int, now: float) -> list[Instruction]:
        """A push that stands for `steps` mini-batches, to be applied on arrival."""
        members = self.members_of_job(call.trainer)
        if self.rounds is not None:
            raise self._wrong_mode("PUSH", "another mode")
        if steps > MOST_STEPS:
            raise _too_many_steps(call.trainer, steps)
        members.running(call.trainer, call.incarnation, now)
        return self.pushes.arrive(call, steps)

    def meet(self, call: WaitingCall, meeting: Meeting, now: float) -> list[Instruction]:
        """A trainer tells its time on a clock; `call` waits until the others are there too."""
        members = self.members_of_job(call.trainer)
        self.raise_if_aborted()
        members.running(call.trainer, call.incarnation, now)
        return self.clocks.arrive(call, meeting, now)

    def closed(self, section: int = 0) -> list[Instruction]:
        """The round that a `Close` of `section` named has been applied."""
        assert self.rounds is not None, "only rounds give a Close"
        return self.rounds.closed(section)

    def applied(self, call: WaitingCall, error: PsrtError | None = None) -> list[Instruction]:
        """The push that an `Apply` named has been applied, or could not be."""
        return self.pushes.applied(call, error)

    def complete(self, trainer: int, incarnation: int, now: float) -> list[Instruction]:
        """A trainer has finished; nobody waits for it any more."""
        self.members_of_job(trainer).heard(trainer, incarnation, now)
        self.members.complete(trainer)
        return self._followed(self.rounds.close_if_complete() if self.rounds is not None else [])

    def expire(self, now: float) -> list[Instruction]:
        """End the waits that are over."""
        in_round = self.rounds.expire(now) if self.rounds is not None else []
        ended = [*self._followed(in_round), *self.clocks.expire(now)]
        if self._looks_s is None or now < self._looks_s:
            return ended
        return [*ended, *self._look(now)]

    def abort(self, error: PsrtError, *, closing: int | None = None) -> list[Instruction]:
        """End the job: every call that waits gets `error`, and every later one that would wait.

        Also the calls of the round that was being applied in section `closing` and now will not be.
        """
        self.aborted = error
        in_round = self.rounds.abort(error, closing=closing) if self.rounds is not None else []
        return self._followed(in_round)

    # --- questions ---------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        """When `expire` has something to do at the earliest."""
        of_round = self.rounds.next_deadline() if self.rounds is not None else None
        three = (of_round, self.clocks.next_deadline(), self._looks_s)
        return min((deadline_s for deadline_s in three if deadline_s is not None), default=None)

    @property
    def open_round(self) -> int:
        return self.rounds.open if self.rounds is not None else 0

    @property
    def global_step(self) -> int:
        """Mini-batches of all trainers, in the modes that push."""
        return self.pushes.step

    def raise_if_aborted(self) -> None:
        if self.aborted is not None:
            raise self.aborted.again()

    def is_new(self, trainer: int, incarnation: int) -> bool:
        """Whether HELLO of this process would change the membership."""
        known = self.members.members[trainer : trainer + 1]
        return not known or known[0].incarnation != incarnation

    def members_of_job(self, trainer: int) -> Membership:
        """The membership; raises before the first HELLO."""
        if self.job is None:
            raise WireError(
                f"trainer {trainer} called before any trainer said HELLO to this pserver; the call "
                "was refused.",
                code=ErrorCode.JOB_MISMATCH,
                hint="Send HELLO with job id and plan hash first.",
            )
        return self.members

    def describe(self, now: float) -> dict[str, Any]:
        """Job, rounds, clocks and members as plain data, for STATUS."""
        job = self.job
        return {
            "job_id": job.job_id if job else "",
            "plan_hash": job.plan_hash if job else "",
            "mode": type(job.mode).__name__ if job else "",
            "round": self.open_round,
            "rounds": self.rounds.opens() if self.rounds is not None else [],
            "waiting": self.rounds.waiting() if self.rounds is not None else [],
            "global_step": self.global_step,
            "clocks": self.clocks.describe(),
            "trainers": self.members.records(now),
        }

    # --- inside ------------------------------------------------------------------------------

    def _begin(self, job: JobIdentity, trainer: int) -> None:
        """Belong to `job` from now on, unless the HELLO that names it is not legal itself."""
        job.check()
        if self._trainers not in (0, job.trainers):
            raise WireError(
                f"trainer {trainer} comes from a job of {job.trainers} trainers, but this pserver "
                f"was started with num_gradient_servers = {self._trainers}. Its HELLO was refused.",
                code=ErrorCode.JOB_MISMATCH,
                hint="Give pservers and trainers the same number; 0 at a pserver takes any.",
            )
        members = Membership(job.trainers)
        members.member(trainer)
        self.job, self.members = job, members
        self.clocks = Clocks(members, self._wait_timeout_s)
        if isinstance(job.mode, Sync):
            self.rounds = BucketRounds(members, job.mode.on_trainer_loss, self._wait_timeout_s)

    def _look(self, now: float) -> list[Instruction]:
        """End the job if everybody it waits for has left: no call would ever come to notice it."""
        self._looks_s = None
        awaited = self.members.awaited()
        if not awaited or self.aborted is not None:
            return []
        due_s = self.members.last_heard_s() + self._wait_timeout_s
        self._looks_s = due_s if due_s > now else now + self._wait_timeout_s
        if due_s > now or self._keeps_places():
            return []
        if not self.members.all_left(self._is_gone):
            return self._warn_once(awaited, now)
        self._looks_s, self.lost = None, _all_left(self.members.describe(awaited, now))
        self.members.lose(awaited)
        return []  # whatever waited is over since `wait_timeout_s` after the last call

    def _keeps_places(self) -> bool:
        """Whether the job goes on when a new process comes, however late."""
        mode = self.job.mode if self.job else None
        return isinstance(mode, Sync) and mode.on_trainer_loss == "wait"

    def _warn_once(self, awaited: list[int], now: float) -> list[Instruction]:
        """Name those for whom alone this pserver stays up."""
        if awaited == self._warned or len(awaited) == len(self.members.members):
            return []
        self._warned = awaited
        story = self.members.describe(awaited, now)
        return [Warn(f"all other trainers have ended; still waiting for {story} to complete")]

    def _followed(self, in_round: list[Instruction]) -> list[Instruction]:
        """The clocks follow what a round decided: to go on without a trainer, or to end the job."""
        if self.aborted is None and self.rounds is not None:
            self.aborted = self.rounds.aborted
        if self.aborted is not None:
            return [*in_round, *self.clocks.abort(self.aborted)]
        return [*in_round, *self.clocks.answer_met()]

    def _wrong_mode(self, method: str, needed: str) -> WireError:
        mode = type(self.job.mode).__name__ if self.job else "no"
        return WireError(
            f"{method} needs {needed}, but this job runs in mode {mode}; it was refused.",
            code=ErrorCode.JOB_MISMATCH,
            hint="Trainers send EXCHANGE in Sync and PUSH in the other modes.",
        )


def _all_left(story: str) -> JobError:
    return JobError(
        f"{story} left without completing, and no other trainer runs; the job was ended.",
        code=ErrorCode.TRAINER_LOST,
        hint="See the lost trainer's log, then start the job again. Within wait_timeout_s of the "
        "pserver a new process takes a lost trainer's place.",
    )


def _too_many_steps(trainer: int, steps: int) -> WireError:
    return WireError(
        f"a push of trainer {trainer} says that it stands for {steps:,} mini-batches; "
        "it was refused.",
        hint=f"Header.step of a PUSH counts those since the one before, {MOST_STEPS:,} at most.",
    )


def _mismatch(trainer: int, theirs: JobIdentity, ours: JobIdentity) -> WireError:
    pairs = (
        ("job id", repr(theirs.job_id), repr(ours.job_id)),
        ("plan hash", theirs.plan_hash, ours.plan_hash),
        ("number of trainers", str(theirs.trainers), str(ours.trainers)),
        ("mode", to_json(theirs.mode), to_json(ours.mode)),
    )
    differing = "; ".join(
        f"{name} is {a} at the trainer and {b} at this pserver" for name, a, b in pairs if a != b
    )
    return WireError(
        f"trainer {trainer} does not belong to the job of this pserver: {differing}. "
        "Its HELLO was refused.",
        code=ErrorCode.JOB_MISMATCH,
        hint="Start all trainers from one job file and flags; a new job needs new pservers.",
    )
