"""Limits the rate at which files are written, so that what else computes here keeps its cores.

Writing costs more than the disk: copies, checksums, and the work of the system for each page of its
cache. A writer without a limit takes them from its neighbours as fast as it can.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

from psrt.core.clock import Clock, MonotonicClock
from psrt.storage.checksums import Buffer
from psrt.storage.directory import AppendWriter

PIECE_BYTES = 1 << 20
"""Bytes that are written between two waits."""

CATCH_UP_S = 0.05
"""Seconds of delay that a writer may make up for; the rest of the limit is lost."""


class RateLimit:
    """At most `bytes_per_s`, at least as much as is needed for `size_bytes` in `within_s`; pure."""

    def __init__(self, bytes_per_s: float, size_bytes: int = 0, within_s: float = math.inf) -> None:
        self._bytes_per_s = max(bytes_per_s, size_bytes / within_s)
        self._due_s = -math.inf

    def spend(self, size_bytes: int, now: float) -> float:
        """Record that bytes have been written; returns seconds until more may be."""
        self._due_s = max(self._due_s, now - CATCH_UP_S) + size_bytes / self._bytes_per_s
        return max(0.0, self._due_s - now)


class WritePace:
    """Waits of one writing thread: none before `begin`, and none from `hurry` on."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or MonotonicClock()
        self._limit: RateLimit | None = None
        self._is_pressed: Callable[[], bool] = lambda: False
        self._is_hurried = threading.Event()

    @property
    def waits(self) -> bool:
        return self._limit is not None and not self._is_hurried.is_set()

    def begin(self, limit: RateLimit, is_pressed: Callable[[], bool]) -> None:
        """Keep to `limit` from now on, except while `is_pressed()`."""
        self._limit, self._is_pressed = limit, is_pressed

    def hurry(self) -> None:
        """Wait no more, a wait under way included; any thread may call."""
        self._is_hurried.set()

    def wrote(self, size_bytes: int) -> None:
        """Wait until more may be written."""
        if self._limit is None or self._is_hurried.is_set():
            return
        wait_s = self._limit.spend(size_bytes, self._clock.now())
        if wait_s and not self._is_pressed():
            self._is_hurried.wait(wait_s)


class PacedWriter:
    """Appends to `out` piece by piece, with the waits of `pace` between them."""

    def __init__(self, out: AppendWriter, pace: WritePace) -> None:
        self._out, self._pace = out, pace

    def write(self, *buffers: Buffer) -> None:
        for buffer in buffers:
            view = memoryview(buffer).cast("B") if len(buffer) else memoryview(b"")
            for start in range(0, len(view), PIECE_BYTES):
                piece = view[start : start + PIECE_BYTES]
                self._out.write(piece)
                self._pace.wrote(len(piece))
