"""When a trainer of a Geo job exchanges: a pure decision at the end of every step.

    step ─▶ step ─▶ … ─▶ step, the `every`-th: start ─▶ step ─▶ step, answered: merge ─▶ …
                          └── not answered when the next one is due: wait, merge, start

So at most one exchange is under way, and what others have done arrives between two steps.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Due:
    """What to do between two steps, in this order; a `merge` waits for the answer if it must."""

    merge: bool
    start: bool


class SyncSchedule:
    """`steps_to_tell` are those that no push has stood for yet."""

    def __init__(self, every: int) -> None:
        self._every = every
        self.steps_to_tell = 0
        self.is_under_way = False

    def step(self, is_answered: bool) -> Due:
        """A step has ended; `is_answered` says how the exchange under way is, if there is one."""
        self.steps_to_tell += 1
        start = self.steps_to_tell >= self._every
        return Due(self.is_under_way and (is_answered or start), start)

    def started(self) -> int:
        """An exchange goes out; how many steps it stands for."""
        assert not self.is_under_way, "two exchanges at a time"
        self.is_under_way = True
        steps, self.steps_to_tell = self.steps_to_tell, 0
        return steps

    def merged(self) -> None:
        """Its answer was merged."""
        assert self.is_under_way, "an answer to nothing"
        self.is_under_way = False
