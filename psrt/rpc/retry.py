"""Retry policy: pure functions of attempt, elapsed time and error.

Nothing here sleeps or reads a clock; `Client` does both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from psrt.core.errors import ErrorCode, PsrtError

REPORT_S = 5.0
"""Seconds between two reports of attempts that fail for one reason."""


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


class AttemptReports:
    """Times at which failed attempts of a client's calls are reported; any thread calls this.

    Each reason is reported at once, and then now and then.
    """

    def __init__(self) -> None:
        self._from_s: dict[ErrorCode, float] = {}

    def is_due(self, reason: ErrorCode, now: float) -> bool:
        """True if an attempt that failed `now`, in seconds, is to be reported."""
        if now < self._from_s.get(reason, now):
            return False
        self._from_s[reason] = now + REPORT_S
        return True

    def answered(self) -> None:
        """Record a reply: the next time without one is reported at once.

        Other reasons go on: other calls do not wait for what a failed one waits for.
        """
        self._from_s.pop(ErrorCode.UNAVAILABLE, None)


def tried_again(what: str, why: str, attempts: int) -> str:
    """The report that attempt number `attempts` of the call `what` has failed."""
    failed = why if why.startswith(what) else f"{what}: {why}"
    return f"{failed} Trying again" + ("." if attempts == 1 else f" after {attempts} attempts.")
