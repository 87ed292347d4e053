"""Preallocation of memory for new rows, by a thread that works ahead of the requests.

The first access to a memory page costs a request 2 µs, and requests that insert rows touch many.
One thread touches them a little earlier, for all tables of a pserver
(`psrt.kernels.tables.growable_memory`). It takes no lock that requests hold for longer than a
growth.
"""

from __future__ import annotations

import contextlib
import threading

from psrt.core.threads import CrashReport, start_thread
from psrt.kernels.tables import Slab


class SlabPreallocator:
    """Any thread may `ask`; the thread starts with the first request and ends with `stop`."""

    def __init__(self, crashes: CrashReport) -> None:
        self._crashes = crashes
        self._changed = threading.Condition()
        self._short: set[Slab] = set()
        self._thread: threading.Thread | None = None
        self._is_stopped = False

    def ask(self, slab: Slab) -> None:
        """Prepare `slab`, which `is_short`, soon."""
        with self._changed:
            self._short.add(slab)
            self._changed.notify()
            if self._thread is None and not self._is_stopped:
                with contextlib.suppress(RuntimeError):  # else requests touch their own pages
                    self._thread = start_thread(self._prepare, "preallocator", self._crashes)

    def stop(self) -> None:
        with self._changed:
            self._is_stopped = True
            self._changed.notify()

    def _prepare(self) -> None:
        while (slab := self._next()) is not None:
            slab.prepare()

    def _next(self) -> Slab | None:
        """The next short slab; None after `stop`."""
        with self._changed:
            self._changed.wait_for(lambda: self._short or self._is_stopped)
            return None if self._is_stopped else self._short.pop()
