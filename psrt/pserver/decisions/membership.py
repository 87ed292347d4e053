"""Membership of a job: the state of each trainer, and the trainers that a round waits for.

Pure bookkeeping without clock, thread or socket; called under the lock of `PserverState`.

    UNSEEN ──join──▶ RUNNING ──complete──▶ COMPLETED
                      │  ▲                    │
                    lose └──── attend ────────┘   (attend: a new incarnation only)
                      ▼         ▲
                     LOST ──────┘

A trainer is one process at a time, its *incarnation*. A new incarnation is introduced by HELLO and
takes the place by its next call, ATTEND or REGISTER: the HELLO of a dead process may arrive late,
after its successor has begun. The former one is refused for good from then on: a process that hung
and resumes must not write into the job. A running trainer whose process has left is *gone*;
`departures` decides when it is lost. One that was asked to end reports that it leaves (`leave`): it
is gone from then on, and has not completed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from psrt.core.errors import ErrorCode, JobError, WireError
from psrt.pserver.decisions.lineages import Lineages
from psrt.pserver.decisions.member import Member, MemberState, description

LINGER_S = 15.0
"""Longest time in which a trainer may ask for the reply to its COMPLETE again: three attempts."""


MOST_INTRODUCED = 16
"""Processes of one trainer that have sent HELLO and may go on to call; the latest are kept."""


def came_back(trainer: int, done: str) -> JobError:
    """The error of a process that was replaced before it had completed; `done` is what follows."""
    return JobError(
        f"trainer {trainer} came back as a new process before it had completed; {done}.",
        code=ErrorCode.TRAINER_LOST,
        hint="With on_trainer_loss = wait or shrink a new process may take over.",
    )


class Membership:
    """The trainers 0 … T-1 of one job; `lineages` are those of their processes."""

    def __init__(self, trainers: int) -> None:
        self.lineages, self._is_resized = Lineages(), False
        self.members = [Member(trainer) for trainer in range(trainers)]
        self._newly_lost: list[int] = []

    def join(self, trainer: int, incarnation: int, now: float) -> None:
        """Record the HELLO of a process; it begins at once only as an unseen trainer."""
        member = self.member(trainer)
        if incarnation in member.former:
            raise self._replaced(member)
        if member.state is MemberState.UNSEEN:
            member.state, member.incarnation = MemberState.RUNNING, incarnation
        if member.incarnation == incarnation:
            self._refuse_lost(member)
            member.called_s, member.gone_s = now, None
        elif incarnation not in member.introduced:
            member.introduced = [*member.introduced[1 - MOST_INTRODUCED :], incarnation]

    def refuse(self, former: Callable[[int], set[int]]) -> None:
        """Refuse the `former` processes of each trainer, before another number of them."""
        self._is_resized = True
        for member in self.members:
            member.former = former(member.trainer)

    def attend(self, trainer: int, incarnation: int, now: float) -> bool:
        """Record the first call after HELLO; return True if it replaces a running process."""
        member = self.member(trainer)
        replaces = False
        if incarnation in member.introduced:
            replaces = member.state is MemberState.RUNNING
            member.former.add(member.incarnation)
            member.introduced.remove(incarnation)
            member.state, member.incarnation = MemberState.RUNNING, incarnation
            member.was_interrupted = member.has_begun = False
        has_begun = member.has_begun
        self.called(trainer, incarnation, now)
        member.has_begun = has_begun
        return replaces

    def begins(self, trainer: int, incarnation: int) -> bool:
        """Return True for a process that has sent nothing but HELLO."""
        member = self.member(trainer)
        return member.incarnation != incarnation or not member.has_called

    def called(self, trainer: int, incarnation: int, now: float) -> None:
        """Record a call; raise unless its process is the current one of this trainer."""
        member = self.member(trainer)
        if incarnation in member.former:
            raise self._replaced(member)
        if member.state is MemberState.UNSEEN:
            raise WireError(
                f"trainer {trainer} has sent no HELLO to this pserver; its call was refused.",
                code=ErrorCode.JOB_MISMATCH,
                hint="Send HELLO with job id and plan hash, then REGISTER, before any push.",
            )
        if member.incarnation != incarnation:
            raise self._replaced(member)
        self._refuse_lost(member)
        member.called_s, member.gone_s = now, None
        member.has_called = member.has_begun = True

    def called_while_running(self, trainer: int, incarnation: int, now: float) -> None:
        """Record a call like `called`; raise also if the trainer has completed."""
        self.called(trainer, incarnation, now)
        if self.member(trainer).state is MemberState.COMPLETED:
            raise JobError(
                f"trainer {trainer} called after its COMPLETE; the call was refused.",
                code=ErrorCode.TRAINER_LOST,
                hint="COMPLETE must be the last call of a trainer.",
            )

    def leave(self, trainer: int, incarnation: int, now: float) -> bool:
        """Record that a process leaves early, because it was asked to; False if that is known."""
        member = self.member(trainer)
        if member.incarnation == incarnation and member.was_interrupted:
            return False
        self.called_while_running(trainer, incarnation, now)
        member.was_interrupted, member.gone_s = True, now
        return True

    def complete(
        self,
        trainer: int,
        now: float,
        will_confirm: bool = False,
        confirms: bool = False,
        position: str = "",
    ) -> None:
        """Record the first COMPLETE of a process, and its confirmation of the reply."""
        member = self.member(trainer)
        if member.state is not MemberState.COMPLETED:
            member.state, member.is_unconfirmed = MemberState.COMPLETED, will_confirm
            member.completed_s, member.position = now, position
            self.lineages.completed(trainer)
        elif member.is_unconfirmed:
            member.completed_s = now  # its process is still there
        if confirms:
            member.is_unconfirmed = False

    def lingers_until(self) -> float | None:
        """The time until which a trainer may ask for its last reply again; None if none will."""
        completed = (m for m in self.members if m.state is MemberState.COMPLETED)
        times = (member.completed_s + LINGER_S for member in completed if member.is_unconfirmed)
        return max(times, default=None)

    def stop_lingering(self, now: float) -> None:
        """Expect no confirmation any more once the time for it has passed."""
        for member in self.members:
            if member.completed_s + LINGER_S <= now:
                member.is_unconfirmed = False

    def lose(self, trainers: Iterable[int]) -> None:
        for trainer in trainers:
            self.member(trainer).state = MemberState.LOST
            self._newly_lost.append(trainer)

    def take_newly_lost(self) -> list[int]:
        """The trainers lost since the last call."""
        lost, self._newly_lost = self._newly_lost, []
        return lost

    def awaited(self) -> list[int]:
        """The trainers that a round needs before it may close."""
        waiting = (MemberState.UNSEEN, MemberState.RUNNING)
        return [member.trainer for member in self.members if member.state in waiting]

    def running(self) -> list[Member]:
        """The trainers that have joined and have neither completed nor been lost."""
        return [member for member in self.members if member.state is MemberState.RUNNING]

    def completed_after(self, time_s: float) -> bool:
        """Return True if a trainer has completed after `time_s`."""
        completed = (m for m in self.members if m.state is MemberState.COMPLETED)
        return any(member.completed_s > time_s for member in completed)

    def last_call_s(self) -> float:
        """The time of the latest call of any trainer; at least one has called."""
        return max(member.called_s for member in self.members if member.incarnation)

    def ended(self) -> bool:
        """Return True if no trainer is awaited and at least one has completed."""
        completed = any(member.state is MemberState.COMPLETED for member in self.members)
        return completed and not self.awaited()

    def describe(self, trainers: Iterable[int], now: float) -> str:
        """A text such as `trainer 1 (gone, last call 3.2 s ago), trainer 2 (never seen)`."""
        return ", ".join(description(self.members[trainer], now) for trainer in trainers)

    def records(self, now: float) -> list[dict[str, Any]]:
        """One record per trainer, for STATUS; `silent_s` is None for an unseen one.

        `presence` is that of a running trainer.
        """
        return [
            {
                "trainer": member.trainer,
                "state": member.state.value,
                "silent_s": round(now - member.called_s, 3) if member.incarnation else None,
                "presence": member.presence.value,
            }
            for member in self.members
        ]

    def dump(self) -> list[list[Any]]:
        """Trainer, state, incarnation, former ones and position of each member, as JSON."""
        return [
            [m.trainer, m.state.value, m.incarnation, sorted(m.former), m.position]
            for m in self.members
        ]

    def restore(self, records: Iterable[list[Any]], now: float) -> None:
        """Continue with records of `dump`; processes that ran are expected from `now` on."""
        for trainer, state, incarnation, former, position in records:
            self.members[trainer] = Member(
                trainer,
                MemberState(state),
                incarnation,
                called_s=now,
                completed_s=now,
                former=set(former),
                position=position,
            )

    def has_met(self, trainer: int, incarnation: int) -> bool:
        """Return True if a process is, or was, that of this trainer."""
        member = self.member(trainer)
        return incarnation == member.incarnation or incarnation in member.former

    def has_completed(self, trainer: int) -> bool:
        return self.member(trainer).state is MemberState.COMPLETED

    def held_by(self, trainer: int, incarnation: int) -> int:
        """The incarnation of another process that is, or was, this trainer, 0 = none.

        One that has completed counts: it stays, to send a killed pserver its pushes again.
        """
        held = [m.incarnation for m in self.members if m.trainer == trainer]
        return next((each for each in held if each != incarnation), 0)

    def member(self, trainer: int) -> Member:
        if not 0 <= trainer < len(self.members):
            raise WireError(
                f"trainer id {trainer} does not exist: the job has trainers 0 to "
                f"{len(self.members) - 1}; the call was refused.",
                code=ErrorCode.JOB_MISMATCH,
                hint="Start every trainer with the same --trainers, and ids below it.",
            )
        return self.members[trainer]

    def _replaced(self, member: Member) -> JobError:
        count = len(self.members)
        changed = f"has joined since, or the job goes on with {count} trainers"
        why = changed if self._is_resized else f"has joined as trainer {member.trainer}"
        return JobError(
            f"another process {why}; this one was refused.",
            code=ErrorCode.TRAINER_LOST,
            hint="Two processes may share one --trainer-id; stop this one.",
        )

    def _refuse_lost(self, member: Member) -> None:
        if member.state is MemberState.LOST:
            raise JobError(
                f"trainer {member.trainer} was given up as lost; its call was refused.",
                code=ErrorCode.TRAINER_LOST,
                hint="Start the trainer again: a new process takes its place.",
            )
