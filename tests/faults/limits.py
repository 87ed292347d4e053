"""Time limits of a round, and the error of a promise that was broken."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable
from multiprocessing.connection import wait

from tests.faults.children import Child

BOUND_S = 90.0
"""Longest time from a start or a fault to the end of all trainers: all waits, and a busy host."""

READY_S = 300.0
"""Longest time from a pserver's start until it is ready; the first one may compile kernels."""

LEAVE_S = 60.0
"""Longest time from the last trainer's end to that of a pserver whose job has ended."""


class Broken(AssertionError):
    """A promise that an attempt broke."""


def check_in_time(awaited: str, deadline: float, children: Iterable[Child]) -> None:
    """Raise `Broken` after a deadline; living processes first write their stacks to their logs."""
    if time.monotonic() < deadline:
        return
    running = [child for child in children if child.is_alive]
    for child in running:
        child.signal(signal.SIGUSR1)
    wait([child.process.sentinel for child in running], 1.0)
    names = ", ".join(child.name for child in running)
    raise Broken(f"no end in time of {awaited}; alive: {names}")
