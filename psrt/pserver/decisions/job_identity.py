"""The facts that all processes of a job must agree on: the job, the pservers that serve it, and
what rounds make of gradients.

A HELLO may come from any process. `specs.from_json` checks kinds and field names of its mode only;
types and ranges of fields are checked here (`check_mode`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from psrt.core.errors import ConfigError, ErrorCode, JobError, UnavailableError, WireError
from psrt.core.specs import CommunicationMode, plan_differences, to_json
from psrt.pserver.decisions.calls import WaitingCall

MAX_TRAINERS = 1 << 16
_CHOICES = {"on_trainer_loss": ("wait", "shrink", "abort"), "merge": ("sum", "average")}
_FROM_ZERO = ("send_wait_times", "max_steps_ahead", "dc_asgd")
"""Every other number is at least 1."""
_MOST = 1 << 62


@dataclass(frozen=True)
class JobIdentity:
    """Job id, hash of the partition plan, number of trainers, communication mode and durability.

    `plan_text` is the plan itself, for messages; "" where it is not known. `durability` is "" for
    none, and None where it is not known: a saved state lacks it, and its first trainer brings it.
    """

    job_id: str
    plan_hash: str
    trainers: int
    mode: CommunicationMode
    plan_text: str = field(default="", compare=False, repr=False)
    durability: str | None = field(default=None, compare=False)

    def check(self) -> None:
        """Raise `ConfigError` unless the number of trainers and the mode are legal."""
        if not 1 <= self.trainers <= MAX_TRAINERS:
            raise ConfigError(
                f"job {self.job_id!r} is to have {self.trainers} trainers, not 1 to "
                f"{MAX_TRAINERS}; it was refused.",
                hint="Give --trainers a number in this range.",
            )
        check_mode(self.mode)

    def check_size(self, expected: int, trainer: int) -> None:
        """Raise unless the job has `expected` trainers (0 = any); `trainer` sent its HELLO."""
        if expected not in (0, self.trainers):
            raise WireError(
                f"trainer {trainer} comes from a job of {self.trainers} trainers, but this pserver "
                f"was started with num_gradient_servers = {expected}. Its HELLO was refused.",
                code=ErrorCode.JOB_MISMATCH,
                hint="Give pservers and trainers the same number; 0 at a pserver takes any.",
            )

    def is_other_number_of(self, job: JobIdentity) -> bool:
        """True if this is `job`, perhaps with another number of trainers."""
        return replace(self, trainers=job.trainers) == job

    def check_same(self, other: JobIdentity, trainer: int, may_change: bool = False) -> None:
        """Raise unless `other`, from the HELLO of `trainer`, is this job.

        A trainer of a job whose number of trainers `may_change` waits for that: `UnavailableError`.
        """
        is_as_durable = self._is_as_durable(other)
        if other == self and is_as_durable:
            return
        if may_change and is_as_durable and other.is_other_number_of(self):
            raise other_number(trainer, other.trainers, self.trainers)
        raise WireError(
            f"trainer {trainer} does not belong to the job of this pserver: "
            f"{'; '.join(self._differences(other))}. Its HELLO was refused.",
            code=ErrorCode.JOB_MISMATCH,
            hint="Start all trainers from one job file and flags; a new job needs new pservers.",
        )

    def _is_as_durable(self, other: JobIdentity) -> bool:
        return other.durability in (None, self.durability) or self.durability is None

    def _differences(self, other: JobIdentity) -> Iterator[str]:
        """The facts in which a trainer of job `other` differs."""
        facts = [
            ("job id", repr(other.job_id), repr(self.job_id)),
            ("number of trainers", str(other.trainers), str(self.trainers)),
            ("mode", to_json(other.mode), to_json(self.mode)),
        ]
        if not self._is_as_durable(other):
            facts.append(("durability", other.durability or "none", self.durability or "none"))
        plans = other.plan_text, self.plan_text
        differences = plan_differences(*plans) if other.plan_hash != self.plan_hash else ""
        if not differences:
            facts.append(("plan hash", other.plan_hash[:12], self.plan_hash[:12]))
        for name, theirs, ours in facts:
            if theirs != ours:
                yield f"{name} is {theirs} at the trainer and {ours} at this pserver"
        if differences:
            yield differences


class PserverProcesses:
    """The incarnation of each pserver of a job by endpoint, fixed by the first trainer.

    A pserver that is started again has a new incarnation and no parameters, unless it recovers
    those of its predecessor. Trainers that found an empty one are refused by the others, so no job
    goes on with half a model.
    """

    def __init__(self) -> None:
        self._incarnations: dict[str, int] = {}

    def check_same(
        self, found: Mapping[str, int], trainer: int, have_backups: bool = False
    ) -> None:
        """Raise `JobError` if `trainer` found another process at an endpoint than the first did.

        If they `have_backups` one of these goes on for it, and the trainer waits for that:
        `UnavailableError`. A trainer of an earlier release reports none.
        """
        known = self._incarnations
        again = sorted(each for each in found if known.get(each, found[each]) != found[each])
        if again and have_backups:
            raise backup_awaited(trainer, again)
        if again:
            raise JobError(
                f"trainer {trainer} found another process at {', '.join(again)} than this job "
                "began with: the pserver was started again, and the parameters it held are lost. "
                "The trainer was refused.",
                hint="Start the job again, all pservers and trainers.",
            )
        self._incarnations = known or dict(found)

    def dump(self) -> dict[str, int]:
        """Incarnations by endpoint."""
        return dict(self._incarnations)

    def restore(self, saved: Mapping[str, int]) -> None:
        """Continue with the result of `dump`."""
        self._incarnations = dict(saved)


def identity(job: JobIdentity | None) -> dict[str, str]:
    """Job id, plan hash and mode, for STATUS; empty before the first trainer."""
    if job is None:
        return {"job_id": "", "plan_hash": "", "mode": ""}
    return {"job_id": job.job_id, "plan_hash": job.plan_hash, "mode": type(job.mode).__name__}


def other_number(trainer: int, its_trainers: int, trainers: int) -> UnavailableError:
    """The error of a trainer that waits until its job has another number of trainers."""
    return UnavailableError(
        f"the job has {trainers} trainers, and trainer {trainer} was started for {its_trainers}; "
        "it waits for that number.",
        code=ErrorCode.RESIZING,
        hint=f"Run psrt scale --trainers {its_trainers} with --endpoint of the first pserver, or "
        f"start the trainer with --trainers {trainers}.",
    )


class BackupAwaitedError(UnavailableError):
    """The error of a trainer that found pservers of `endpoints` started again, before their backups
    have taken over."""

    endpoints: Sequence[str] = ()


def backup_awaited(trainer: int, endpoints: Sequence[str]) -> BackupAwaitedError:
    """See `BackupAwaitedError`."""
    error = BackupAwaitedError(
        f"trainer {trainer} found {', '.join(endpoints)} started again, and joins once more: the "
        "backup is about to serve what that pserver held.",
        code=ErrorCode.TAKING_OVER,
        hint="If this lasts, see the log of the backup: it waits for each trainer that has used "
        "the former process.",
    )
    error.endpoints = endpoints
    return error


def no_job(trainer: int) -> WireError:
    """The error of a call before the first HELLO."""
    return WireError(
        f"trainer {trainer} called before any trainer sent HELLO to this pserver; the call was "
        "refused.",
        code=ErrorCode.JOB_MISMATCH,
        hint="Send HELLO with job id and plan hash first.",
    )


def wrong_mode(job: JobIdentity | None, method: str, needed: str) -> WireError:
    """The error of a push by the wrong method."""
    return WireError(
        f"{method} needs {needed}, but this job runs in mode {identity(job)['mode'] or 'no'}; it "
        "was refused.",
        code=ErrorCode.JOB_MISMATCH,
        hint="Trainers send EXCHANGE in Sync and PUSH in the other modes.",
    )


def check_mode(mode: CommunicationMode) -> None:
    """Raise `ConfigError` unless every setting of `mode` is legal."""
    problem = next(_problems(mode), "")
    if problem:
        raise ConfigError(
            f"mode {type(mode).__name__} has {problem}.",
            hint="See docs/explanation/semantics.md for what each setting means.",
        )


def _problems(mode: CommunicationMode) -> Iterator[str]:
    for setting in dataclasses.fields(mode):
        value, choices = getattr(mode, setting.name), _CHOICES.get(setting.name)
        if choices is not None:
            if value not in choices:
                yield f"{setting.name} = {value!r}, not one of {', '.join(choices)}"
        elif isinstance(setting.default, bool):
            if not isinstance(value, bool):
                yield f"{setting.name} = {value!r}, not true or false"
        else:
            yield from _number_problems(setting.name, value, type(setting.default))


def _number_problems(name: str, value: Any, kind: type) -> Iterator[str]:
    least = 0 if name in _FROM_ZERO else 1
    kinds = (int, float) if kind is float else (int,)
    is_number = isinstance(value, kinds) and not isinstance(value, bool)
    if not is_number or not least <= value <= _MOST:
        wanted = "a finite number" if kind is float else "a whole number"
        yield f"{name} = {value!r}, not {wanted} from {least} on, at most 2^62"


def check_reduces(call: WaitingCall, pushes: Sequence[WaitingCall]) -> None:
    """Raise `WireError` unless a push asks for the same as the `pushes` of its round."""
    other = next((each for each in pushes if each.sums is not None), None)
    if call.sums is None or other is None or call.sums == other.sums:
        return
    own, theirs = ("sum", "mean") if call.sums else ("mean", "sum")
    raise WireError(
        f"trainer {call.trainer} pushed for the {own} of gradients over trainers, and trainer "
        f"{other.trainer} for the {theirs}, in one round; the push was refused.",
        code=ErrorCode.JOB_MISMATCH,
        hint="Give the TableOptimizer of all trainers the same reduce.",
    )
