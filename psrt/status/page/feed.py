"""Reports of a job, made once for all readers of its page, as server-sent events.

Nobody looks while nobody reads: the reader whose turn it is asks the pservers, and the others get
the same view.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Generator

from psrt.core.clock import Clock, MonotonicClock
from psrt.status.facts import ClusterFacts
from psrt.status.page.view import view_of

EVERY_S = 1.0
LAST_S = 10.0
"""A report that is older gives no rates."""
RETRY_MS = 2000


class Feed:
    """The newest view of a job, from `gather`; any thread may ask. `close` ends all streams."""

    def __init__(self, gather: Callable[[], ClusterFacts], clock: Clock | None = None) -> None:
        self._gather, self._clock = gather, clock or MonotonicClock()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._facts: ClusterFacts | None = None
        self._looked_s = 0.0
        self._view = b""

    def view(self) -> bytes:
        """The view as JSON, at most `EVERY_S` old."""
        with self._lock:
            now_s = self._clock.now()
            if self._facts is None or now_s - self._looked_s >= EVERY_S:
                self._look(now_s)
            return self._view

    def events(self) -> Generator[bytes]:
        """A view every `EVERY_S` as an event, until `close`."""
        yield f"retry: {RETRY_MS}\n\n".encode()
        while not self._closed.is_set():
            yield b"data: " + self.view() + b"\n\n"
            self._closed.wait(EVERY_S)

    def close(self) -> None:
        self._closed.set()

    def _look(self, now_s: float) -> None:
        facts = self._gather()
        is_fresh = now_s - self._looked_s <= LAST_S
        view = view_of(facts, self._facts if is_fresh else None, time.time())
        self._view = json.dumps(view, separators=(",", ":")).encode()
        self._facts, self._looked_s = facts, now_s
