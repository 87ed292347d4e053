"""Named clocks of the trainers as pure decisions: (event, now) → instructions.

A trainer reports its time on a clock and may wait until all others have reached a given time:

    arrive(reached, awaited) ── every other trainer ≥ awaited, completed or lost ──▶ SendReply
            │
            └── the caller's deadline, `wait_timeout_s`, abort ──▶ Fail, names the missing trainers

Times begin at 0 and never go back. A retried call therefore changes nothing and is one more call
that waits. A trainer never waits for itself. A process that takes a trainer's place asks where it
`begins`: at its predecessor's time, or at that of the slowest other trainer if that is later. So
neither it nor the others wait for steps that are not repeated.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from psrt.core.errors import DeadlineError, ErrorCode, JobError, PsrtError, WireError
from psrt.pserver.decisions.calls import Fail, Instruction, SendReply, WaitingCall
from psrt.pserver.decisions.membership import Membership
from psrt.pserver.decisions.notes import Notes

NO_OTHER = (1 << 64) - 1
"""The end of time: that of a trainer that takes no further step, or of no trainer at all."""

MAX_CLOCKS = 1024
_MAX_NAME = 256


@dataclass(frozen=True)
class Meeting:
    """Content of a MEET: the caller has `reached` a time and waits for `awaited` (0 = no wait).

    `note` is for the trainers that wait for the time it has reached. With `begins`, `reached` is 0
    and the caller continues at its predecessor's time.
    """

    clock: str
    reached: int
    awaited: int
    note: str = ""
    begins: bool = False

    @property
    def waits(self) -> bool:
        """False for a time that is only reported; a trainer that has completed may repeat it."""
        return self.awaited > 0 or self.begins


@dataclass(frozen=True, eq=False)
class _Wait:
    call: WaitingCall
    meeting: Meeting
    since_s: float
    deadline_s: float


class Clocks:
    """The clocks of one job on one pserver."""

    def __init__(self, members: Membership, wait_timeout_s: float) -> None:
        self._members = members
        self._wait_timeout_s = wait_timeout_s
        self._times: dict[str, dict[int, int]] = {}
        self._notes = Notes()
        self._waits: list[_Wait] = []

    # --- events ------------------------------------------------------------------------------

    def arrive(self, call: WaitingCall, meeting: Meeting, now: float) -> list[Instruction]:
        """Record a MEET of a running trainer's current process; raises on a bad clock name."""
        times = self._clock(meeting.clock)
        self._notes.write(meeting.clock, call.trainer, meeting.reached, meeting.note)
        reached = self._begin(call.trainer, meeting.clock) if meeting.begins else meeting.reached
        times[call.trainer] = max(times.get(call.trainer, 0), reached)
        deadline_s = min(call.deadline_s, now + self._wait_timeout_s)
        self._waits.append(_Wait(call, meeting, now, deadline_s))
        return self.answer_met()

    def answer_met(self) -> list[Instruction]:
        """Reply to calls whose wait is over; call it after an awaited trainer may have left."""
        clocks = {wait.meeting.clock for wait in self._waits}
        slowest = {clock: self._two_slowest(clock) for clock in clocks}
        met = [wait for wait in self._waits if _is_met(wait, slowest[wait.meeting.clock])]
        return [SendReply(call) for call in self._end(met)]

    def replaced(self, trainer: int) -> list[Instruction]:
        """Record a new process of `trainer` whose former one had not completed."""
        error = JobError(
            f"trainer {trainer} came back as a new process; the wait of the former one was ended.",
            code=ErrorCode.TRAINER_LOST,
            hint="Two processes may share one --trainer-id; stop this one.",
        )
        own = [wait for wait in self._waits if wait.call.trainer == trainer]
        return [Fail(call, error) for call in self._end(own)]

    def expire(self, now: float) -> list[Instruction]:
        """End the waits whose deadline has passed."""
        due = [wait for wait in self._waits if wait.deadline_s <= now]
        errors = [self._late(wait, now) for wait in due]
        return [Fail(call, error) for call, error in zip(self._end(due), errors, strict=True)]

    def abort(self, error: PsrtError) -> list[Instruction]:
        """End all waits with the `error` that ended the job."""
        return [Fail(call, error) for call in self._end(list(self._waits))]

    def restore(self, clock: str, trainers: Iterable[int], time: int) -> None:
        """Record that trainers have reached a time, as a cut has it."""
        if reached := dict.fromkeys(trainers, time):
            self._clock(clock).update(reached)

    # --- questions ---------------------------------------------------------------------------

    def at(self, clock: str, time: int) -> list[int]:
        """The trainers that have reached a time."""
        times = self._times.get(clock, {})
        return sorted(trainer for trainer, reached in times.items() if reached >= time)

    def begin(self, trainer: int, meeting: Meeting) -> int:
        """The time at which the process of `trainer` begins; 0 unless it has asked."""
        own = self._times[meeting.clock][trainer] if meeting.begins else 0
        return own if own != NO_OTHER else self._begin(trainer, meeting.clock)

    def slowest_other(self, trainer: int, clock: str) -> int:
        """The least time of the other trainers that have neither completed nor been lost."""
        return _slowest_other(self._two_slowest(clock), trainer)

    def missing_at(self, now: float) -> set[int]:
        """The trainers awaited by calls that have waited for `wait_timeout_s`."""
        over = [wait for wait in self._waits if wait.since_s + self._wait_timeout_s <= now]
        return {trainer for wait in over for trainer in self._missing(wait)}

    def notes(self, clock: str, time: int) -> list[str]:
        """The notes for `time` by trainer; an empty list if there are none."""
        return self._notes.written(clock, time, len(self._members.members))

    def next_deadline(self) -> float | None:
        return min((wait.deadline_s for wait in self._waits), default=None)

    def describe(self, now: float) -> list[dict[str, Any]]:
        """One record per clock, for STATUS: the time of each trainer, and the waiting ones.

        `waiting_s` has the seconds that each of these has waited.
        """
        return [
            {
                "clock": name,
                "reached": [times.get(member.trainer, 0) for member in self._members.members],
                "waiting": sorted(waiting := self._waiting_s(name, now)),
                "waiting_s": waiting,
            }
            for name, times in self._times.items()
        ]

    def check(self) -> None:
        """Assert that each wait is for another trainer; tests call it after every event."""
        for wait in self._waits:
            others = self._missing(wait)
            assert others, f"trainer {wait.call.trainer} waits for no trainer"
            assert wait.call.trainer not in others, "a trainer waits for itself"

    # --- inside ------------------------------------------------------------------------------

    def _waiting_s(self, clock: str, now: float) -> dict[int, float]:
        """Seconds since the first call of each trainer that waits on a clock."""
        since_s: dict[int, float] = {}
        for wait in self._waits:
            if wait.meeting.clock == clock:
                trainer = wait.call.trainer
                since_s[trainer] = min(since_s.get(trainer, now), wait.since_s)
        return {trainer: round(now - began_s, 3) for trainer, began_s in since_s.items()}

    def _clock(self, name: str) -> dict[int, int]:
        if name not in self._times and (
            not 0 < len(name) <= _MAX_NAME or len(self._times) >= MAX_CLOCKS
        ):
            raise WireError(
                f"MEET names clock {name[:_MAX_NAME]!r}, but names have 1 to {_MAX_NAME} letters "
                f"and a job has at most {MAX_CLOCKS} clocks; the call was refused.",
                hint="Meet again and again on one clock, at times 1, 2, 3 …",
            )
        return self._times.setdefault(name, {})

    def _begin(self, trainer: int, clock: str) -> int:
        """The later of the trainer's own time and that of the slowest other; 0 for a first process.

        A predecessor that was at the end of time has left no step to continue with.
        """
        if not self._members.member(trainer).former:
            return 0
        times = (self._times[clock].get(trainer, 0), self.slowest_other(trainer, clock))
        return max((time for time in times if time != NO_OTHER), default=0)

    def _two_slowest(self, clock: str) -> list[tuple[int, int]]:
        """(time, trainer) of the two slowest awaited: at least one of them is not the caller."""
        times = self._times.get(clock, {})
        return heapq.nsmallest(2, ((times.get(t, 0), t) for t in self._members.awaited()))

    def _missing(self, wait: _Wait) -> list[int]:
        times = self._times[wait.meeting.clock]
        others = (t for t in self._members.awaited() if t != wait.call.trainer)
        return [t for t in others if times.get(t, 0) < wait.meeting.awaited]

    def _end(self, waits: list[_Wait]) -> list[WaitingCall]:
        if waits:
            self._waits = [wait for wait in self._waits if wait not in waits]
        return [wait.call for wait in waits]

    def _late(self, wait: _Wait, now: float) -> DeadlineError:
        caller, meeting = wait.call.trainer, wait.meeting
        return DeadlineError(
            f"trainer {caller} waited {now - wait.since_s:.1f} s on clock {meeting.clock!r} for "
            f"{self._members.describe(self._missing(wait), now)} to reach {meeting.awaited}; the "
            f"slowest is at {self.slowest_other(caller, meeting.clock)}. The wait was ended.",
            hint=(
                "See the log of the missing trainer; to wait longer raise call_timeout_s of the "
                "trainers and wait_timeout_s of the pservers."
            ),
        )


def _is_met(wait: _Wait, slowest: list[tuple[int, int]]) -> bool:
    return _slowest_other(slowest, wait.call.trainer) >= wait.meeting.awaited


def _slowest_other(slowest: list[tuple[int, int]], trainer: int) -> int:
    return next((time for time, other in slowest if other != trainer), NO_OTHER)
