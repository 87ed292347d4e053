"""The order in which trainers complete: trainer 0 last, after a test and a save of all learning.

Pservers end once every trainer has completed. So trainers 1 … T-1 complete as soon as their last
gradient is applied. Trainer 0 waits here until the pservers list every other trainer as completed
or lost, then tests, saves, and completes last.

In a synchronous job rounds still wait for trainer 0 meanwhile: it joins each with an empty push
(`arrive`), which enters no average, and blocks until the round closes or fails with the names of
the missing. In the other modes it polls. Either way the wait ends with an error when it has no
prospect (`psrt.communicator.members`).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from psrt.communicator.base import Communicator
from psrt.communicator.members import Members, Patience
from psrt.core.clock import Clock
from psrt.core.errors import DeadlineError, ErrorCode, UnavailableError
from psrt.core.specs import CommunicationMode, Sync

POLL_S = 0.2
SAY_EVERY_S = 5.0


class CompletionWait:
    """The wait of trainer `me` for all others to complete."""

    def __init__(
        self, me: int, patience_s: float, policy: str, clock: Clock, say: Callable[[str], None]
    ) -> None:
        self._me, self._clock, self._say = me, clock, say
        self._said_s = clock.now()
        self._patience = Patience(patience_s, policy, self._said_s)

    def over(self, members: Members) -> bool:
        """Return True once no other trainer runs; raise when the wait has no prospect."""
        running, now = members.running(self._me), self._clock.now()
        if not running:
            self._name_lost(members)
            return True
        names = members.describe(running)
        idle_s = self._patience.idle_s(members, running, now)
        if idle_s is not None:
            raise DeadlineError(
                f"trainer {self._me} finished and waits for {names} to complete, but no pserver "
                f"has applied an update for {idle_s:.0f} s; it gave up.",
                hint=f"See the log of {names}. The model was not tested or saved.",
            )
        if now - self._said_s >= SAY_EVERY_S:
            self._said_s = now
            self._say(f"waiting for {names} to complete")
        return False

    def _name_lost(self, members: Members) -> None:
        lost = [trainer for trainer in members.lost() if trainer != self._me]
        if lost:
            self._say(
                f"warning: going on without {members.describe(lost)}, which left without "
                "completing: the model lacks what it did not train on"
            )


def waiting_turn(communicator: Communicator, mode: CommunicationMode) -> Callable[[], None]:
    """Return the action of one turn of a wait for others that still train.

    It raises `UnavailableError` once the number of trainers has changed.
    """

    def arrive() -> None:
        if isinstance(mode, Sync):
            communicator.finish({})
        else:
            time.sleep(POLL_S)
        if trainers := communicator.resized_to:
            raise UnavailableError(
                f"the job goes on with {trainers} trainers.", code=ErrorCode.RESIZING
            )

    return arrive


def await_others(
    waiting: CompletionWait, members_now: Callable[[], Members], arrive: Callable[[], None]
) -> Members:
    """Repeat `arrive` (join a round, or sleep) until every other trainer is gone."""
    while not waiting.over(members := members_now()):
        arrive()
    return members
