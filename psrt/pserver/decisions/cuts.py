"""Cuts of one pserver as pure decisions: (event, now) → instructions.

A cut contains exactly the pushes before it. Each running trainer ends its pushes, sends CUT and
waits; once all have, no push is under way, and the tables are frozen as of that point. Then all go
on, while the frozen tables are written.

    OPEN ──CUT of every running trainer──▶ FREEZING ──frozen()──▶ frozen, all calls answered
      └── `wait_s` after the first call, a newer cut, abort ──▶ given up, all calls fail,
                                                            and the coordinator gets a NoPart

A CUT carries the sequence of its trainer's last push before it. A trainer that gave up waiting, and
pushes again, ends the cut; so does a CUT that arrives behind such a push, and in Sync a trainer
that waits in a round for one that takes part.

Numbers grow. A repeated CUT of a frozen cut is answered at once; one of a cut that was given up
fails again. A trainer that joins late takes part like the others; one that is lost is not awaited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from psrt.core.errors import ErrorCode, JobError, PsrtError
from psrt.pserver.decisions.calls import Fail, Freeze, Instruction, NoPart, SendReply, WaitingCall
from psrt.pserver.decisions.member import MemberState
from psrt.pserver.decisions.membership import Membership


class Cuts:
    """The cut that trainers take part in, and the newest that ended.

    `proposed()` is the cut that trainers should take part in. `trainers` is the number with which
    the job goes on from the open cut, 0 = it does not change.
    """

    def __init__(
        self, members: Membership, wait_s: float, proposed: Callable[[], int] = lambda: 0
    ) -> None:
        self.number = self.trainers = 0
        self.freezing = False
        self.frozen_number = 0
        self._members, self._wait_s, self._proposed = members, wait_s, proposed
        self._announced = (0, 0)  # a round of Sync, and the cut behind it that its replies name
        self._deadline_s: float | None = None
        self._opened_s = 0.0
        self._calls: dict[int, list[WaitingCall]] = {}
        self._pushed: dict[tuple[int, int], int] = {}  # last sequence by trainer and incarnation

    # --- events ------------------------------------------------------------------------------

    def arrive(
        self, call: WaitingCall, number: int, now: float, trainers: int = 0
    ) -> list[Instruction]:
        """Add a CUT of a running trainer's current process; its content has the position.

        All calls name the same number of `trainers`; one that does not ends the cut.
        """
        if number == self.frozen_number:
            return [SendReply(call, repeated=True)]
        if self._pushed.get((call.trainer, call.incarnation), 0) > call.sequence:
            return [Fail(call, given_up(number, "its trainer has pushed since"))]
        if number < self.number or (number == self.number and not self._is_open):
            return [Fail(call, given_up(number, "another one was proposed, or it took too long"))]
        ended: list[Instruction] = []
        if number > self.number:
            ended = self.give_up("a newer one was proposed")
            self.number, self._deadline_s = number, now + self._wait_s
            self._opened_s = now
            self.trainers = trainers
        self._calls.setdefault(call.trainer, []).append(call)
        if trainers != self.trainers:
            why = f"trainer {call.trainer} does not take part in a change of their number"
            return [*ended, *self.give_up(why)]
        return [*ended, *self.freeze_if_complete()]

    def pushed(self, call: WaitingCall) -> list[Instruction]:
        """Record a push; one of a trainer that takes part ends the cut."""
        key = (call.trainer, call.incarnation)
        self._pushed[key] = max(self._pushed.get(key, 0), call.sequence)
        taking_part = self._calls.get(call.trainer, [])
        if any(each.sequence < call.sequence for each in taking_part):
            return self.give_up(f"trainer {call.trainer} went on without it")
        return []

    def crossed(self, waiting: Callable[[], Iterable[int]]) -> list[Instruction]:
        """Give up the cut if a trainer that waits in a round of Sync takes no part.

        One that joined late, or whose pserver was started again, may not have met the announcement.
        It waits for the push of those that take part, and they for its CUT.
        """
        if not self._is_open or self.freezing:
            return []
        others = sorted(set(waiting()) - self._calls.keys())
        return self.give_up(f"trainer {others[0]} trains on without it") if others else []

    def announce_behind(self, round: int) -> None:
        """Announce a newly proposed cut by the replies of this round: all take part behind it."""
        if (number := self._proposed()) > self._announced[1]:
            self._announced = (round, number)

    def freeze_if_complete(self) -> list[Instruction]:
        """Freeze if every running trainer takes part; call it after one may have left."""
        running = self._running()
        if not self._is_open or self.freezing or any(t not in self._calls for t in running):
            return []
        if self.trainers and len(running) < len(self._members.members):
            return self.give_up("not all trainers run, which a change of their number needs")
        self.freezing = True
        taking_part = sorted(self._calls.keys() & set(running))
        return [Freeze(self.number, tuple(self._calls[trainer][-1] for trainer in taking_part))]

    def freeze_without_calls(self, number: int) -> list[Instruction]:
        """Freeze for a cut after the last push of a job.

        Nothing if it was frozen for it before, or if a trainer was started again.
        """
        if number <= self.frozen_number or self._running():
            return []
        ended = self.give_up("the job has ended") if self._is_open else []
        self.number = number
        return [*ended, Freeze(number, ())]

    def frozen(self) -> list[Instruction]:
        """Record that the tables are frozen."""
        self.frozen_number = self.number
        return [SendReply(call) for call in self._end()]

    def give_up(self, why: str) -> list[Instruction]:
        """End the open cut without freezing anything; also after freezing failed.

        The coordinator need not wait for this part: the same cut is never open again.
        """
        if not self._is_open:
            return []
        error = given_up(self.number, why)
        return [*(Fail(call, error) for call in self._end()), NoPart(self.number, why)]

    def refuse(self, number: int, why: str) -> list[Instruction]:
        """End cut `number`, also before anybody takes part in it, unless a newer one is open."""
        if number < self.number:
            return []
        ended, self.number = self.give_up(why), number
        return ended

    def replaced(self, trainer: int) -> list[Instruction]:
        """Record a new process of `trainer`; the calls of the former fail."""
        if self.freezing:
            return []
        calls, why = self._calls.pop(trainer, []), "its process was replaced"
        failed: list[Instruction] = [Fail(call, given_up(self.number, why)) for call in calls]
        if calls and not self._calls:
            return [
                *failed,
                *self.give_up(f"the only trainer that took part, {trainer}, has ended"),
            ]
        return failed

    def expire(self, now: float) -> list[Instruction]:
        """Give up a cut that some trainer has kept waiting too long."""
        deadline_s = self.next_deadline()
        if deadline_s is None or deadline_s > now:
            return []
        missing = [trainer for trainer in self._running() if trainer not in self._calls]
        return self.give_up(f"it waited for {self._members.describe(missing, now)}")

    def abort(self, error: PsrtError) -> list[Instruction]:
        """End the wait with the `error` that ended the job; a freeze under way ends by itself."""
        return [] if self.freezing else [Fail(call, error) for call in self._end()]

    def restore(self, number: int) -> None:
        """Continue behind cut `number`, whose calls are answered again."""
        self._end()
        self.number = self.frozen_number = number

    # --- questions ---------------------------------------------------------------------------

    def describe(self, now: float) -> dict[str, Any] | None:
        """The cut that trainers wait to take part in, for STATUS; None if there is none."""
        if not self._is_open:
            return None
        return {
            "number": self.number,
            "waiting": sorted(self._calls),
            "missing": [trainer for trainer in self._running() if trainer not in self._calls],
            "for_s": round(now - self._opened_s, 3),
        }

    def next_deadline(self) -> float | None:
        """The time at which the cut is given up: its own, or that of the first call."""
        if self.freezing or self._deadline_s is None:
            return None
        ends_s = [call.deadline_s for calls in self._calls.values() for call in calls]
        return min([self._deadline_s, *ends_s])

    @property
    def calls(self) -> list[WaitingCall]:
        """The calls of the open cut."""
        return [call for calls in self._calls.values() for call in calls]

    def behind(self, round: int) -> int:
        """The cut that the replies of a round name, 0 = none."""
        announced_round, number = self._announced
        return number if round >= announced_round else 0

    def check(self) -> None:
        """Assert the invariants; tests call it after every event."""
        assert self._is_open == bool(self._calls), "an open cut has calls, another has none"
        assert not self.freezing or self._calls, "an empty cut is freezing"
        assert self.frozen_number <= self.number

    # --- inside ------------------------------------------------------------------------------

    @property
    def _is_open(self) -> bool:
        return self._deadline_s is not None

    def _running(self) -> list[int]:
        members = self._members.members
        return [each.trainer for each in members if each.state is MemberState.RUNNING]

    def _end(self) -> list[WaitingCall]:
        calls = self.calls
        self._calls.clear()
        self.freezing, self._deadline_s, self.trainers = False, None, 0
        return calls


def given_up(number: int, why: str) -> JobError:
    """The error of a cut that was not made; training goes on."""
    return JobError(
        f"cut {number} was given up: {why.removesuffix('.')}. Nothing of it is kept, and training "
        "goes on.",
        code=ErrorCode.CUT_GIVEN_UP,
        hint="The next cut may succeed; raise wait_timeout_s of the pservers if trainers are slow.",
    )
