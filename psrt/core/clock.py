"""Clocks: deciding code takes `now` as an argument; the code around it reads a `Clock`."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds on a monotonic scale; only differences mean anything."""
        ...


def hours_since_1970() -> int:
    """Whole hours of calendar time, for ages that outlive the process."""
    return int(time.time() // 3600)


class MonotonicClock:
    def now(self) -> float:
        return time.monotonic()
