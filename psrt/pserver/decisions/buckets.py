"""Synchronous rounds per bucket, as if each bucket were a pserver of its own.

Buckets share the members of the job: if one goes on without a trainer, the others do not wait for
it, and if one ends the job, it ends for all. Otherwise they are independent: bucket 3 may apply
round 8 while bucket 4 waits in round 7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from psrt.core.errors import PsrtError
from psrt.pserver.decisions.calls import Instruction, SendReply, WaitingCall
from psrt.pserver.decisions.dedupe import AdmittedPushes
from psrt.pserver.decisions.membership import Membership
from psrt.pserver.decisions.rounds import Rounds


class BucketRounds:
    """`Rounds` by bucket, created by its first call; bucket 0 always exists.

    `applied` has the pushes of all closed rounds. `lateness` has, of each trainer, the number of
    pushes and the seconds by which they came after the first one of their round, in all.
    """

    def __init__(
        self, members: Membership, on_trainer_loss: str, wait_timeout_s: float, first_round: int = 0
    ) -> None:
        self._make: Callable[[], Rounds] = lambda: Rounds(
            members, on_trainer_loss, wait_timeout_s, first_round
        )
        self._rounds = {0: self._make()}
        self.applied = AdmittedPushes()
        self.lateness: dict[int, tuple[int, float]] = {}
        self._opened: dict[int, tuple[int, float]] = {}  # round and time of its first push
        # newest round, and the time of its push, by bucket and trainer
        self._counted: dict[tuple[int, int], tuple[int, float]] = {}

    @property
    def aborted(self) -> PsrtError | None:
        """The error that ended the job; None while it runs."""
        return next((rounds.aborted for rounds in self._all() if rounds.aborted), None)

    @property
    def is_closing(self) -> bool:
        """True while the round of a bucket is being applied."""
        return any(rounds.closing for rounds in self._all())

    @property
    def open(self) -> int:
        """The open round of bucket 0."""
        return self._rounds[0].open

    @property
    def newest_open(self) -> int:
        """The newest round that is open in any bucket."""
        return max(rounds.open for rounds in self._all())

    def open_rounds(self) -> list[tuple[int, int]]:
        """Pairs of bucket and open round."""
        return sorted((bucket, rounds.open) for bucket, rounds in self._rounds.items())

    def waiting(self) -> list[int]:
        """The trainers with a push in an open round."""
        return sorted({trainer for rounds in self._all() for trainer in rounds.waiting()})

    def open_s(self, now: float) -> float:
        """The longest time since the first push of an open round, in seconds; 0 = no push."""
        opened = [
            self._opened[bucket][1] for bucket, each in self._rounds.items() if each.waiting()
        ]
        return now - min(opened, default=now)

    def waiting_s(self, now: float) -> dict[int, float]:
        """Seconds since the push of each trainer in an open round; the longest over buckets."""
        waits: dict[int, float] = {}
        for bucket, each in self._rounds.items():
            for trainer in each.waiting():
                _, since_s = self._counted.get((bucket, trainer), (0, now))
                waits[trainer] = max(waits.get(trainer, 0.0), round(now - since_s, 3))
        return waits

    def arrive(self, call: WaitingCall, now: float) -> list[Instruction]:
        """See `Rounds.arrive`."""
        if call.bucket not in self._rounds:
            self._rounds[call.bucket] = self._make()
        rounds = self._rounds[call.bucket]
        number, instructions = rounds.open, rounds.arrive(call, now)
        if not any(isinstance(each, SendReply) for each in instructions):
            self._count(call, number, now)
        return instructions

    def _count(self, call: WaitingCall, number: int, now: float) -> None:
        """Count the first call of a push of round `number`."""
        if self._opened.get(call.bucket, (-1, 0.0))[0] != number:
            self._opened[call.bucket] = number, now
        if self._counted.get((call.bucket, call.trainer), (-1, 0.0))[0] == number:
            return
        self._counted[call.bucket, call.trainer] = number, now
        pushes, seconds = self.lateness.get(call.trainer, (0, 0.0))
        late_s = now - self._opened[call.bucket][1]
        self.lateness[call.trainer] = pushes + 1, seconds + late_s

    def close_if_complete(self) -> list[Instruction]:
        """Close the rounds that wait for no trainer; call it after one may have left."""
        return _joined(rounds.close_if_complete() for rounds in self._all())

    def closed(self, bucket: int) -> list[Instruction]:
        """Record that the closing round of `bucket` was applied to the tables."""
        answers = self._rounds[bucket].closed()
        for answer in answers:
            if isinstance(answer, SendReply) and not answer.repeated:
                self.applied.admit(answer.call.trainer, *answer.call.key)
        return answers

    def replaced(self, trainer: int) -> list[Instruction]:
        """Record a new process of `trainer` whose former one had not completed."""
        return self._each(lambda rounds: rounds.replaced(trainer))

    def expire(self, now: float) -> list[Instruction]:
        """End the waits whose deadline has passed."""
        return self._each(lambda rounds: rounds.expire(now))

    def next_deadline(self) -> float | None:
        """The earliest time at which `expire` has something to do."""
        deadlines = [rounds.next_deadline() for rounds in self._all()]
        return min((each for each in deadlines if each is not None), default=None)

    def abort(self, error: PsrtError, *, closing: int | None = None) -> list[Instruction]:
        """End the job with `error`; `closing` is the bucket whose closing round is given up."""
        return _joined(
            rounds.abort(error, closing=bucket == closing)
            for bucket, rounds in self._rounds.items()
        )

    def dump(self) -> list[list[Any]]:
        """Of each bucket the open round, and the key of each trainer's last push, as JSON."""
        return [
            [bucket, rounds.open, [[trainer, *key] for trainer, key in rounds.last_applied.items()]]
            for bucket, rounds in sorted(self._rounds.items())
        ]

    def restore(self, records: Iterable[list[Any]]) -> None:
        """Continue with records of `dump`."""
        for bucket, open_round, taken in records:
            rounds = self._rounds.setdefault(bucket, self._make())
            rounds.open = open_round
            rounds.last_applied = {trainer: (process, last) for trainer, process, last in taken}

    def check(self) -> None:
        """Assert the invariants; tests call it after every event."""
        for rounds in self._all():
            rounds.check()
        ended = {rounds.aborted is not None for rounds in self._all()}
        assert len(ended) == 1, "the job ended in some buckets only"

    def _each(self, event: Callable[[Rounds], list[Instruction]]) -> list[Instruction]:
        """Pass `event` to all buckets, then apply to each the decisions of the others."""
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
