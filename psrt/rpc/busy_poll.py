"""Busy polling: a thread polls for a message for a short time before it sleeps.

Waking a sleeping thread takes 5 µs on a physical host. It takes 50 µs in a guest whose idle core
went back to the host and whose caches are cold by then: successive calls for one row took 550 µs
asleep and 260 µs awake. Polling occupies a core, so only sockets with a usually low latency are
polled, by fewer threads than there are cores.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

Poll: TypeAlias = Callable[[int, int], object]
"""`poll(fd, nanoseconds)` returns once `fd` is readable, at the latest after that time. It offers
the core to other threads meanwhile and releases the interpreter's lock
(`psrt.kernels.lowlevel.spin.await_input`)."""

_ENOUGH, _MOST = 2, 3


class LatencyTracker:
    """Tracks whether messages usually arrive within `limit_s` of the start of a wait.

    A count from 0 to 3 rises with each quick message and falls with each slow one; a socket is
    quick from a count of 2 on.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._quick = 0

    @property
    def is_quick(self) -> bool:
        return self._quick >= _ENOUGH

    def record(self, seconds: float) -> None:
        """Record the wait for one message."""
        if seconds > self._limit_s:
            self._quick = max(0, self._quick - 1)
        elif self._quick < _MOST:
            self._quick += 1


class BusyPoll:
    """Busy polling of one process: each poll lasts `limit_us`, at most `at_once` threads poll.

    Any thread may use it. By default one thread fewer than there are cores polls; none polls
    without a limit.
    """

    def __init__(self, limit_us: int, poll: Poll, at_once: int | None = None) -> None:
        others = (os.cpu_count() or 1) - 1
        self._limit_us = limit_us
        self._poll = poll
        self._free = deque([None] * (others if at_once is None else at_once))

    def tracker(self) -> LatencyTracker:
        """Return the tracker of one more socket."""
        return LatencyTracker(self._limit_us / 1e6 if self._limit_us else -1.0)

    def poll(self, fd: int) -> None:
        """Return once input arrives, after the limit, or at once if enough threads poll."""
        try:
            self._free.pop()
        except IndexError:
            return
        try:
            self._poll(fd, self._limit_us * 1000)
        finally:
            self._free.append(None)


NEVER = BusyPoll(0, lambda fd, nanoseconds: None)
"""No polling: threads sleep at once."""
