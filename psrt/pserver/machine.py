"""Everything a pserver decides, as events in and instructions out.

`Machine` composes the job's identity (fixed by the first HELLO), the membership, the rounds of Sync
and the dedupe of Async. It opens no socket, starts no thread and reads no clock: the service calls
it under one lock with `now`, and executes what it returns. Whatever the *caller* did wrong is
raised; what concerns other calls that wait is in the instructions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psrt.core.errors import ConfigError, ErrorCode, PsrtError, WireError
from psrt.core.specs import Async, CommunicationMode, Sync, to_json
from psrt.pserver.dedupe import AdmittedPushes
from psrt.pserver.membership import Membership
from psrt.pserver.rounds import Call, Instruction, Rounds

MAX_TRAINERS = 1 << 16
LOSS_POLICIES = ("wait", "shrink", "abort")


@dataclass(frozen=True)
class Job:
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
        if not isinstance(self.mode, Sync | Async):
            raise ConfigError(
                f"job {self.job_id!r} asks for mode {type(self.mode).__name__}, which this pserver "
                "does not serve.",
                hint="Use Sync or Async.",
            )
        if isinstance(self.mode, Sync) and self.mode.on_trainer_loss not in LOSS_POLICIES:
            raise ConfigError(
                f"on_trainer_loss = {self.mode.on_trainer_loss!r} is not a policy.",
                hint=f"Use one of {', '.join(LOSS_POLICIES)}.",
            )


class Machine:
    """The state of one pserver process; lives as long as the process."""

    def __init__(self, wait_timeout_s: float) -> None:
        self.job: Job | None = None
        self.members = Membership(0)
        self.rounds: Rounds | None = None
        self.global_step = 0
        self._admitted = AdmittedPushes()
        self._wait_timeout_s = wait_timeout_s

    # --- events ------------------------------------------------------------------------------

    def hello(self, trainer: int, incarnation: int, job: Job, now: float) -> list[Instruction]:
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
        if self.members.join(trainer, incarnation, now) and self.rounds is not None:
            return self.rounds.replaced(trainer)
        return []

    def heard(self, trainer: int, incarnation: int, now: float) -> None:
        """A call that needs no round, from a process that must be known."""
        self.members_of_job(trainer).heard(trainer, incarnation, now)

    def exchange(self, call: Call, now: float) -> list[Instruction]:
        """One trainer's push for a round of Sync; `call` waits until an instruction names it."""
        members = self.members_of_job(call.trainer)
        if self.rounds is None:
            raise self._wrong_mode("EXCHANGE", "Sync")
        self.rounds.raise_if_aborted()
        members.running(call.trainer, call.incarnation, now)
        return self.rounds.arrive(call, now)

    def push(
        self, trainer: int, incarnation: int, sequence: int, steps: int, now: float
    ) -> int | None:
        """A push of Async: the global step to apply it at, None if it was admitted before."""
        members = self.members_of_job(trainer)
        if self.rounds is not None:
            raise self._wrong_mode("PUSH", "Async")
        members.running(trainer, incarnation, now)
        if not self._admitted.admit(trainer, incarnation, sequence):
            return None
        step = self.global_step
        self.global_step += steps
        return step

    def closed(self) -> list[Instruction]:
        """The round that a `Close` named has been applied."""
        assert self.rounds is not None, "only rounds give a Close"
        return self.rounds.closed()

    def complete(self, trainer: int, incarnation: int, now: float) -> list[Instruction]:
        """A trainer has finished; rounds go on without it."""
        self.members_of_job(trainer).heard(trainer, incarnation, now)
        self.members.complete(trainer)
        return self.rounds.close_if_complete() if self.rounds is not None else []

    def expire(self, now: float) -> list[Instruction]:
        return self.rounds.expire(now) if self.rounds is not None else []

    def abort(self, error: PsrtError, *, closing: bool = False) -> list[Instruction]:
        """End the job: every call that waits gets `error`, and every later one.

        With `closing`, also the calls of the round that was being applied and now will not be.
        """
        return self.rounds.abort(error, closing=closing) if self.rounds is not None else []

    # --- questions ---------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        return self.rounds.next_deadline() if self.rounds is not None else None

    @property
    def open_round(self) -> int:
        return self.rounds.open if self.rounds is not None else 0

    def raise_if_aborted(self) -> None:
        if self.rounds is not None:
            self.rounds.raise_if_aborted()

    @property
    def aborted(self) -> PsrtError | None:
        return self.rounds.aborted if self.rounds is not None else None

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
        """Job, rounds and members as plain data, for STATUS."""
        job = self.job
        return {
            "job_id": job.job_id if job else "",
            "plan_hash": job.plan_hash if job else "",
            "mode": type(job.mode).__name__ if job else "",
            "round": self.open_round,
            "waiting": self.rounds.waiting() if self.rounds is not None else [],
            "global_step": self.global_step,
            "trainers": self.members.records(now),
        }

    # --- inside ------------------------------------------------------------------------------

    def _begin(self, job: Job, trainer: int) -> None:
        """Belong to `job` from now on, unless the HELLO that names it is not legal itself."""
        job.check()
        members = Membership(job.trainers)
        members.member(trainer)
        self.job, self.members = job, members
        if isinstance(job.mode, Sync):
            self.rounds = Rounds(self.members, job.mode.on_trainer_loss, self._wait_timeout_s)

    def _wrong_mode(self, method: str, needed: str) -> WireError:
        mode = type(self.job.mode).__name__ if self.job else "no"
        return WireError(
            f"{method} needs mode {needed}, but this job runs in mode {mode}; it was refused.",
            code=ErrorCode.JOB_MISMATCH,
            hint="Trainers send EXCHANGE in Sync and PUSH in the other modes.",
        )


def _mismatch(trainer: int, theirs: Job, ours: Job) -> WireError:
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
