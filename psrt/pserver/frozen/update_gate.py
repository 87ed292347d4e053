"""The gate of a table's updates, which a freeze shuts for a moment.

An update costs two uncontended locks (0.4 µs): no thread waits for another but for a freeze.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from queue import SimpleQueue


class UpdateGate:
    """`with gate:` is an update, in any number of threads."""

    def __init__(self) -> None:
        self._door = threading.Lock()  # guards `_begun`
        self._begun = 0
        self._ending = threading.Lock()  # guards the two below
        self._ended = 0
        self._last: SimpleQueue[None] | None = None  # gets an item when no update is under way

    def __enter__(self) -> None:
        with self._door:
            self._begun += 1

    def __exit__(self, *_: object) -> None:
        with self._ending:
            self._ended += 1
            if self._last is not None and self._ended == self._begun:
                self._last.put(None)

    @contextlib.contextmanager
    def shut(self) -> Iterator[None]:
        """Wait for updates under way, and keep new ones out until the end."""
        with self._door:
            last = SimpleQueue[None]()
            with self._ending:
                self._last = None if self._ended == self._begun else last
            if self._last is not None:
                last.get()
                self._last = None
            yield
