"""A clock that tests advance."""

from __future__ import annotations


class ManualClock:
    """A clock that tests advance."""

    def __init__(self, start_s: float = 0.0) -> None:
        self._now_s = start_s

    def now(self) -> float:
        return self._now_s

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError("a monotonic clock does not go back")
        self._now_s += seconds
