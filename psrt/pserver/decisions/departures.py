"""Detection of trainers whose process has left without completing, and what follows; pure.

A process that has left is *gone*: its connections have ended, or it was ended while it joined: it
sent HELLO and ATTEND, and nothing else for `wait_timeout_s`. A process that is silent may compute
or read for long, and is never gone. When a trainer has been gone for `wait_timeout_s`, or is gone
at the end of a wait of that length for it, the job's policy applies; to one that was interrupted,
and reports that it leaves, at once:

    shrink   the trainer is lost, and the job goes on without it
    abort    the job ends with an error that names it
    wait     its place is kept for a new process; if this pserver recovers, and lacks pushes of it,
             or a failover waits for its process, the job ends as with abort

Whatever the policy, a job ends when all its running trainers have been gone for that time: no call
arrives any more that could detect it, so the pserver checks by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Sequence
from typing import TypeAlias

from psrt.core.errors import ErrorCode, JobError
from psrt.pserver.decisions.calls import Instruction, Warn
from psrt.pserver.decisions.member import Member, Presence
from psrt.pserver.decisions.membership import Membership
from psrt.pserver.decisions.recovery import Recovery, never_sent

IsGone: TypeAlias = Callable[[int, int], bool | None]
"""(trainer, incarnation) → True if that process has left, None if it never had a connection."""

CHECKS = 4
"""Checks in `wait_timeout_s`."""

_HINT = "See the lost trainer's log, then start the job again."


class Departures:
    """Checks for trainers that have left; `due_s` is the time of the next check.

    `lost` is the error of a job whose last trainers left; a process that takes a trainer's place is
    still accepted after it. `aborted` is the error of a job that a departure ended. `recovery` has
    the pushes that this pserver lacks, `held` the trainers that hold failovers back, by part.
    """

    def __init__(self, wait_timeout_s: float, is_gone: IsGone, policy: str = "wait") -> None:
        self.due_s: float | None = None
        self.lost: JobError | None = None
        self.aborted: JobError | None = None
        self.policy, self.recovery = policy, Recovery()
        self.held: dict[int, Collection[int]] = {}
        self._wait_timeout_s = wait_timeout_s
        self._is_gone = is_gone
        self._silent: list[int] = []  # the trainers named as silent
        self._kept: set[int] = set()  # incarnations whose place is kept

    def schedule(self, now: float) -> None:
        """Plan the first check, if none is planned."""
        if self.due_s is None:
            self.due_s = now + self._wait_timeout_s / CHECKS

    def is_due(self, now: float) -> bool:
        return self.due_s is not None and self.due_s <= now

    def update_presence(self, members: Membership, now: float) -> None:
        """Record which running trainers are present and which are gone."""
        for member in members.running():
            member.presence = self._presence(member, now)
            if member.presence is not Presence.GONE:
                member.gone_s = None
            elif member.gone_s is None:
                member.gone_s = now if member.has_called else member.called_s

    def check(self, members: Membership, now: float) -> list[Instruction]:
        """Apply the policy to trainers that were gone for long; plan the next check."""
        self.update_presence(members, now)
        self.due_s = now + self._wait_timeout_s / CHECKS if members.awaited() else None
        running = members.running()
        overdue = [m for m in running if _gone_s(m, now) >= self._wait_timeout_s]
        if overdue and overdue == running:
            return self._end(members, overdue, now)
        return [*self._apply(members, overdue, now), *self._name_silent(members, now)]

    def end_waits(
        self, members: Membership, missing: Container[int], now: float
    ) -> list[Instruction]:
        """Apply the policy to those of `missing` that are gone: waits for them are over."""
        self.update_presence(members, now)
        gone = [m for m in members.running() if m.gone_s is not None and m.trainer in missing]
        return self._apply(members, gone, now)

    def left(self, members: Membership, trainer: int, now: float) -> list[Instruction]:
        """Apply the policy to a trainer that has just reported that it leaves early.

        Without another trainer the job ends, unless its place is kept.
        """
        member = members.member(trainer)
        if self.policy != "wait" and members.awaited() == [trainer]:
            return self._end(members, [member], now)
        return self._apply(members, [member], now)

    def _presence(self, member: Member, now: float) -> Presence:
        if member.was_interrupted:
            return Presence.GONE
        is_gone = self._is_gone(member.trainer, member.incarnation)
        if is_gone is None:
            only_joined = not member.has_begun and now - member.called_s >= self._wait_timeout_s
            return Presence.GONE if only_joined else Presence.UNKNOWN
        return Presence.GONE if is_gone else Presence.PRESENT

    def _end(self, members: Membership, gone: Sequence[Member], now: float) -> list[Instruction]:
        """End a job none of whose processes is left.

        Under `shrink` it ends well if a trainer has finished it without those that are gone.
        """
        if self.policy == "shrink" and members.completed_after(max(m.called_s for m in gone)):
            return self._apply(members, gone, now)
        trainers = [member.trainer for member in gone]
        unseen = [trainer for trainer in members.awaited() if trainer not in trainers]
        self.due_s, self.lost = None, _all_left(members.describe(trainers, now), unseen)
        members.lose(trainers)
        return []

    def _apply(self, members: Membership, gone: Sequence[Member], now: float) -> list[Instruction]:
        if not gone:
            return []
        trainers = [member.trainer for member in gone]
        left = f"{members.describe(trainers, now)} left without completing; "
        if self.policy == "shrink":
            members.lose(trainers)
            return [Warn(f"{left}the job goes on without it")]
        if self.policy == "abort":
            text = f"{left}the job was aborted."
            self.aborted = JobError(text, code=ErrorCode.TRAINER_LOST, hint=_HINT)
            return []
        self.aborted = self._irreplaceable(members, trainers, now)
        return [] if self.aborted is not None else self._keep_places(gone, left)

    def _irreplaceable(
        self, members: Membership, gone: Sequence[int], now: float
    ) -> JobError | None:
        """The error of a job that cannot go on without a process of those that are gone."""
        if without := list(filter(self.recovery.lacks, gone)):
            return never_sent(members.describe(without, now))
        for part, held in self.held.items():
            if holding := sorted(set(held).intersection(gone)):
                return _holds_failover(part, members.describe(holding, now))
        return None

    def _keep_places(self, gone: Sequence[Member], left: str) -> list[Instruction]:
        """Name each process once."""
        incarnations = {member.incarnation for member in gone}
        if incarnations <= self._kept:
            return []
        self._kept |= incarnations
        return [Warn(f"{left}its place is kept for a new process (on_trainer_loss = wait)")]

    def _name_silent(self, members: Membership, now: float) -> list[Instruction]:
        """Name the trainers that alone keep this pserver running, once."""
        awaited = members.awaited()
        is_silent = members.last_call_s() + self._wait_timeout_s <= now
        others_run = not awaited or len(awaited) == len(members.members)
        if not is_silent or others_run or awaited == self._silent:
            return []
        self._silent = awaited
        missing = members.describe(awaited, now)
        return [Warn(f"all other trainers have ended; still waiting for {missing} to complete")]


def _gone_s(member: Member, now: float) -> float:
    """Seconds since the process of `member` was found to have left; -1 if it has not."""
    return -1.0 if member.gone_s is None else now - member.gone_s


def _holds_failover(part: int, trainers: str) -> JobError:
    return JobError(
        f"{trainers} left before it had asked this pserver to serve part {part}, whose pserver has "
        "ended; pushes of it to that part may be lost. The job was ended.",
        code=ErrorCode.TRAINER_LOST,
        hint="Start it again, with --resume latest if it writes cuts. With on_trainer_loss = "
        "shrink the others go on.",
    )


def _all_left(trainers: str, unseen: Sequence[int]) -> JobError:
    never = ", ".join(f"trainer {trainer}" for trainer in unseen)
    return JobError(
        f"{trainers} left without completing, and no other trainer runs; the job was ended."
        + (f" Never seen: {never}." if unseen else ""),
        code=ErrorCode.TRAINER_LOST,
        hint=f"{_HINT} Within wait_timeout_s of the pserver a new process takes a lost trainer's "
        "place.",
    )
