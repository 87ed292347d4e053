"""The order in which trainers complete: trainer 0 last, after a test and a save of all learning.

Pservers end once every trainer has completed. So trainers 1 … T-1 complete as soon as their last
gradient is applied. Trainer 0 waits here until the pservers list every other trainer as gone, then
tests, saves, and completes last.

In a synchronous job rounds still wait for trainer 0 meanwhile: it joins each with an empty push
(`arrive`), which enters no average, and blocks until the round closes or fails with the names of
the missing. In the other modes it polls. Either way the wait ends with an error when the pservers'
counters do not change for `patience_s`: a slow trainer changes them, a dead one does not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from psrt.communicator.base import Communicator
from psrt.core.clock import Clock
from psrt.core.errors import DeadlineError
from psrt.core.specs import CommunicationMode, Sync

POLL_S = 0.2
SAY_EVERY_S = 5.0


@dataclass(frozen=True)
class Members:
    """State of the job on a pserver: one state per trainer, and a count of updates."""

    states: Sequence[str]
    updates: int

    def running(self, me: int) -> list[int]:
        """Trainers other than `me` that may still push."""
        gone = ("completed", "lost")
        return [t for t, state in enumerate(self.states) if t != me and state not in gone]


class CompletionWait:
    """The wait of trainer `me` for all others to complete."""

    def __init__(
        self, me: int, patience_s: float, clock: Clock, say: Callable[[str], None]
    ) -> None:
        self._me, self._patience_s, self._clock, self._say = me, patience_s, clock, say
        self._moved_s = self._said_s = clock.now()
        self._updates = -1

    def over(self, members: Members) -> bool:
        """Return True once no other trainer runs; raise when nothing changes."""
        running, now = members.running(self._me), self._clock.now()
        if not running:
            return True
        if members.updates != self._updates:
            self._updates, self._moved_s = members.updates, now
        names = " and ".join(f"trainer {trainer}" for trainer in running)
        if now - self._moved_s >= self._patience_s:
            raise DeadlineError(
                f"trainer {self._me} finished and waits for {names} to complete, but no pserver "
                f"has applied an update for {now - self._moved_s:.0f} s; it gave up.",
                hint=f"See the log of {names}. The model was not tested or saved.",
            )
        if now - self._said_s >= SAY_EVERY_S:
            self._said_s = now
            self._say(f"waiting for {names} to complete")
        return False


def waiting_turn(communicator: Communicator, mode: CommunicationMode) -> Callable[[], None]:
    """Return the action of one turn of a wait for others that still train."""

    def arrive() -> None:
        if isinstance(mode, Sync):
            communicator.finish({})
        else:
            time.sleep(POLL_S)

    return arrive


def await_others(
    waiting: CompletionWait, members_now: Callable[[], Members], arrive: Callable[[], None]
) -> Members:
    """Repeat `arrive` (join a round, or sleep) until every other trainer is gone."""
    while not waiting.over(members := members_now()):
        arrive()
    return members
