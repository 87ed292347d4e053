"""Retry policy: pure functions of attempt, elapsed time and error.

Nothing here sleeps or reads a clock; `Client` does both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from psrt.core.errors import PsrtError


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential back-off with jitter, within a budget.

    The delay before retry n = 0, 1, … is `initial_s · factor^n`, at most `max_s`, less a random
    part of up to `jitter` of it, so that trainers that lost a pserver do not retry at one time.
    """

    initial_s: float = 0.05
    factor: float = 2.0
    max_s: float = 2.0
    jitter: float = 0.5
    budget_s: float = 60.0

    def next_delay(
        self, attempt: int, elapsed_s: float, error: PsrtError, random: Callable[[], float]
    ) -> float | None:
        """Return seconds to wait before retry `attempt`, or None to give up.

        `random` returns a number in [0, 1). Gives up when the error is not retryable, or when the
        wait would pass the budget.
        """
        if not error.spec.retryable:
            return None
        longest = min(self.max_s, self.initial_s * self.factor ** min(attempt, 64))
        delay = longest * (1.0 - self.jitter * random())
        return delay if elapsed_s + delay < self.budget_s else None


def patience(left_s: float) -> float:
    """A timeout above the caller's: the pserver's error, which names awaited trainers, is first."""
    return left_s + min(1.0, 0.1 * left_s)
