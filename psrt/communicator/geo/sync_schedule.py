"""Schedule of the exchanges of a Geo trainer: a pure decision at the end of every step.

    step ─▶ step ─▶ … ─▶ step, the `every`-th: start ─▶ step ─▶ step, answered: merge ─▶ …
                          └── not answered when the next one is due: wait, merge, start

So at most one exchange is under way, and changes of others are merged between two steps.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Due:
    """Actions between two steps, in this order; `merge` waits for a missing answer."""

    merge: bool
    start: bool


class SyncSchedule:
    """`uncounted_steps` are those that no push has counted yet."""

    def __init__(self, every: int) -> None:
        self._every = every
        self.uncounted_steps = 0
        self.is_under_way = False

    def step(self, is_answered: bool) -> Due:
        """Decide at the end of a step; `is_answered` is True if the exchange under way is."""
        self.uncounted_steps += 1
        start = self.uncounted_steps >= self._every
        return Due(self.is_under_way and (is_answered or start), start)

    def started(self) -> int:
        """Record the start of an exchange; returns the number of steps it counts."""
        assert not self.is_under_way, "two exchanges at a time"
        self.is_under_way = True
        steps, self.uncounted_steps = self.uncounted_steps, 0
        return steps

    def merged(self) -> None:
        """Record the merge of the answer."""
        assert self.is_under_way, "an answer to nothing"
        self.is_under_way = False
