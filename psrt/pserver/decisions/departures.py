"""Detection of jobs whose last trainers left without completing; pure.

When all awaited trainers are gone, no call arrives that could detect it. So the pserver checks once
in `wait_timeout_s`. A silent process may compute or read for long: only one without a connection is
gone.
"""

from __future__ import annotations

from collections.abc import Callable

from psrt.core.errors import ErrorCode, JobError
from psrt.pserver.decisions.calls import Instruction, Warn
from psrt.pserver.decisions.membership import Membership


class Departures:
    """Checks whether the awaited trainers have left; `due_s` is the time of the next check.

    `is_gone(trainer, incarnation)` returns True if that process has no connection left. `lost` is
    the error of a job whose last trainers left. A process that takes a trainer's place is still
    accepted after it.
    """

    def __init__(self, wait_timeout_s: float, is_gone: Callable[[int, int], bool]) -> None:
        self.due_s: float | None = None
        self.lost: JobError | None = None
        self._wait_timeout_s = wait_timeout_s
        self._is_gone = is_gone
        self._warned: list[int] = []

    def schedule(self, now: float) -> None:
        """Plan the first check, if none is planned."""
        if self.due_s is None:
            self.due_s = now + self._wait_timeout_s

    def is_due(self, now: float) -> bool:
        return self.due_s is not None and self.due_s <= now

    def check(self, members: Membership, now: float, *, keeps_places: bool) -> list[Instruction]:
        """Set `lost` if all awaited `members` have left; otherwise plan the next check.

        A job that `keeps_places` goes on when a new process joins, however late.
        """
        self.due_s = None
        awaited = members.awaited()
        if not awaited:
            return []
        due_s = members.last_call_s() + self._wait_timeout_s
        self.due_s = due_s if due_s > now else now + self._wait_timeout_s
        if due_s > now or keeps_places:
            return []
        if not members.all_left(self._is_gone):
            return self._warn_once(members, awaited, now)
        self.due_s, self.lost = None, _all_left(members.describe(awaited, now))
        members.lose(awaited)
        return []  # every wait ended within `wait_timeout_s` after the last call

    def _warn_once(self, members: Membership, awaited: list[int], now: float) -> list[Instruction]:
        """Name the trainers that alone keep this pserver running."""
        if awaited == self._warned or len(awaited) == len(members.members):
            return []
        self._warned = awaited
        missing = members.describe(awaited, now)
        return [Warn(f"all other trainers have ended; still waiting for {missing} to complete")]


def _all_left(trainers: str) -> JobError:
    return JobError(
        f"{trainers} left without completing, and no other trainer runs; the job was ended.",
        code=ErrorCode.TRAINER_LOST,
        hint="See the lost trainer's log, then start the job again. Within wait_timeout_s of the "
        "pserver a new process takes a lost trainer's place.",
    )
