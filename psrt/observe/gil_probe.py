"""Time that a thread waits for the interpreter's lock, measured by one that asks now and then.

It sleeps, which gives up the lock, and wakes at a known time. What passes from then until its next
line is the wait for the lock, once the time is taken off that it waited for a core.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from pathlib import Path

from psrt.core.threads import CrashReport, start_thread

EVERY_S = 0.25
_SLEEP_S = 0.001
_PR_SET_TIMERSLACK = 29


class GilProbe:
    """Asks for the lock from construction to `close`; `probes` and `waited_s` only grow."""

    def __init__(self, crashes: CrashReport, every_s: float = EVERY_S) -> None:
        self.probes, self.waited_s = 0, 0.0
        self._every_s, self._closed = every_s, threading.Event()
        self._thread = start_thread(self._run, "gil probe", crashes)

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        wake_in_time()
        while not self._closed.wait(self._every_s):
            self.waited_s += wait_for_lock()
            self.probes += 1


def wait_for_lock() -> float:
    """Give the lock up for a millisecond; returns the seconds until this thread had it again."""
    for_core_s, wakes_s = _waited_for_core_s(), time.monotonic() + _SLEEP_S
    time.sleep(_SLEEP_S)
    late_s = time.monotonic() - wakes_s
    return max(0.0, late_s - (_waited_for_core_s() - for_core_s))


def wake_in_time() -> None:
    """Let the calling thread wake without the 50 µs that Linux may add to save power."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)


def _waited_for_core_s() -> float:
    """Seconds that the calling thread was ready to run and had no core; 0 where unknown."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0
