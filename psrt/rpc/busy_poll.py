"""Looking whether a message has come, for a moment, before going to sleep for it.

To wake a sleeping thread takes 5 µs on a machine of one's own, and 50 in a guest whose idle core
went back to the host, where caches are cold by then: calls for one row, each made when the one
before was answered, took 550 µs asleep and 260 awake. Looking costs a core meanwhile, so it is done
only where messages come that quickly as a rule, and by fewer threads than there are cores.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

Look: TypeAlias = Callable[[int, int], object]
"""`look(fd, nanoseconds)` returns when there is something to read, or so much later at most. It
offers the core to other threads all the time, and leaves them the interpreter's lock
(`psrt.kernels.lowlevel.spin.await_input`)."""

_ENOUGH, _MOST = 2, 3


class LatencyTracker:
    """Whether messages come within `limit_s` of being waited for, as a rule: two in a row make one,
    and as many that do not end it, or three."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._quick = 0

    @property
    def is_quick(self) -> bool:
        return self._quick >= _ENOUGH

    def waited(self, seconds: float) -> None:
        """A message came after so long."""
        if seconds > self._limit_s:
            self._quick = max(0, self._quick - 1)
        elif self._quick < _MOST:
            self._quick += 1


class BusyPoll:
    """Of one process: its sockets are looked at for `limit_us`, by `at_once` threads at most.

    Any thread may use it. Without a limit, or on a single core, nobody looks.
    """

    def __init__(self, limit_us: int, look: Look, at_once: int | None = None) -> None:
        others = (os.cpu_count() or 1) - 1
        self._limit_us = limit_us
        self._look = look
        self._free = deque([None] * (others if at_once is None else at_once))

    def habit(self) -> LatencyTracker:
        """For one more socket."""
        return LatencyTracker(self._limit_us / 1e6 if self._limit_us else -1.0)

    def look(self, fd: int) -> None:
        """Return when a message has begun to come, after the limit, or at once if enough look."""
        try:
            self._free.pop()
        except IndexError:
            return
        try:
            self._look(fd, self._limit_us * 1000)
        finally:
            self._free.append(None)


NEVER = BusyPoll(0, lambda fd, nanoseconds: None)
"""Go to sleep at once."""
