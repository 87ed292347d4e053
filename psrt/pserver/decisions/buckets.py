"""The rounds of all sections of one pserver: each has its own, as if it were a pserver of its own.

Sections share the members of the job, so what one of them decides about a trainer counts for all:
where one goes on without a trainer the others need not wait for it, and where one ends the job, it
ends. For the rest they are independent: section 3 may be applying round 8 while 4 waits in round 7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from psrt.core.errors import PsrtError
from psrt.pserver.decisions.calls import Instruction, WaitingCall
from psrt.pserver.decisions.membership import Membership
from psrt.pserver.decisions.rounds import Rounds


class BucketRounds:
    """`Rounds` by section; one begins with its first call. Section 0 is always there."""

    def __init__(self, members: Membership, on_trainer_loss: str, wait_timeout_s: float) -> None:
        self._make: Callable[[], Rounds] = lambda: Rounds(members, on_trainer_loss, wait_timeout_s)
        self._rounds = {0: self._make()}

    @property
    def aborted(self) -> PsrtError | None:
        """Why the job ended."""
        return next((rounds.aborted for rounds in self._all() if rounds.aborted), None)

    @property
    def open(self) -> int:
        """The round that section 0 has open."""
        return self._rounds[0].open

    def opens(self) -> list[tuple[int, int]]:
        """(section, the round it has open)."""
        return sorted((section, rounds.open) for section, rounds in self._rounds.items())

    def waiting(self) -> list[int]:
        """Trainers with a push in an open round."""
        return sorted({trainer for rounds in self._all() for trainer in rounds.waiting()})

    def arrive(self, call: WaitingCall, now: float) -> list[Instruction]:
        """See `Rounds.arrive`."""
        if call.section not in self._rounds:
            self._rounds[call.section] = self._make()
        return self._rounds[call.section].arrive(call, now)

    def close_if_complete(self) -> list[Instruction]:
        """To be called whenever an awaited trainer may have gone."""
        return _joined(rounds.close_if_complete() for rounds in self._all())

    def closed(self, section: int) -> list[Instruction]:
        """The updates of the round that was closing in `section` are in the tables."""
        return self._rounds[section].closed()

    def replaced(self, trainer: int) -> list[Instruction]:
        """A new process took over `trainer` while the former one had not completed."""
        return self._each(lambda rounds: rounds.replaced(trainer))

    def expire(self, now: float) -> list[Instruction]:
        """Answer whatever may not wait any longer."""
        return self._each(lambda rounds: rounds.expire(now))

    def next_deadline(self) -> float | None:
        """When `expire` has something to do at the earliest."""
        deadlines = [rounds.next_deadline() for rounds in self._all()]
        return min((each for each in deadlines if each is not None), default=None)

    def abort(self, error: PsrtError, *, closing: int | None = None) -> list[Instruction]:
        """End the job with `error`; see `Rounds.abort` for the round `closing` in a section."""
        return _joined(
            rounds.abort(error, closing=section == closing)
            for section, rounds in self._rounds.items()
        )

    def check(self) -> None:
        """Assert the invariants; tests call it after every event."""
        for rounds in self._all():
            rounds.check()
        ended = {rounds.aborted is not None for rounds in self._all()}
        assert len(ended) == 1, "the job ended in some sections only"

    def _each(self, event: Callable[[Rounds], list[Instruction]]) -> list[Instruction]:
        """What all sections do about `event`, and then about what the others have decided."""
        instructions: list[Instruction] = []
        for rounds in self._all():
            error = self.aborted
            instructions += event(rounds) if error is None else rounds.abort(error)
        if self.aborted is None:
            return [*instructions, *self.close_if_complete()]
        before = [rounds for rounds in self._all() if rounds.aborted is None]
        return [*instructions, *_joined(rounds.abort(self.aborted) for rounds in before)]

    def _all(self) -> list[Rounds]:
        return list(self._rounds.values())


def _joined(parts: Iterable[list[Instruction]]) -> list[Instruction]:
    return [instruction for part in parts for instruction in part]
