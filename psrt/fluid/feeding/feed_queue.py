"""Queue of batches that a program's own threads push, and its runs take."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

from psrt.core.errors import DeadlineError

_WAIT_S = 180.0
_POLL_S = 0.1


class FeedQueue:
    """Batches in the order of `push`, at most `capacity` of them before a run takes one.

    Iterating over it ends after `close`, once all batches are taken; it waits for a batch at most
    `wait_timeout_s` seconds, then raises `DeadlineError`.
    """

    def __init__(self, capacity: int, wait_timeout_s: float = _WAIT_S) -> None:
        self._batches: queue.Queue[Any] = queue.Queue(capacity)
        self._closed = threading.Event()
        self._wait_timeout_s = wait_timeout_s

    def push(self, batch: Any) -> bool:
        """Add a batch: a tensor for each var of the loader. Returns False once it is closed."""
        while not self._closed.is_set():
            try:
                self._batches.put(batch, timeout=_POLL_S)
                return True
            except queue.Full:
                continue  # a run makes room, or the queue is closed
        return False

    def close(self) -> None:
        """End the data: runs take what was pushed, and then there is no more."""
        self._closed.set()

    def is_closed(self) -> bool:
        """Return whether `close` was called."""
        return self._closed.is_set()

    def size(self) -> int:
        """Return the number of batches that no run has taken yet."""
        return self._batches.qsize()

    def __iter__(self) -> Iterator[Any]:
        while True:
            until = time.monotonic() + self._wait_timeout_s
            while (batch := self._next()) is None:
                if self._closed.is_set() and self._batches.empty():
                    return
                if time.monotonic() > until:
                    raise DeadlineError(
                        f"A run waited {self._wait_timeout_s:g} s for a batch that nobody pushed.",
                        hint="Push from a thread, or close() the queue at the end of the data.",
                    )
            yield batch

    def _next(self) -> Any:
        try:
            return self._batches.get(timeout=_POLL_S)
        except queue.Empty:
            return None


__all__ = ["FeedQueue"]
