"""Idle connections of one client, ready for the next call."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple

from psrt.rpc.dialing import Connection

NOT_ENDED: AbstractContextManager[None] = nullcontext()
"""A call that only its own thread ends."""


class Opened(NamedTuple):
    """A connection, and the pserver process that was greeted before it was opened.

    Another process may be at its other end: one that was started since, at the same place.
    """

    connection: Connection
    process: int


class ConnectionPool:
    """Connections that no call uses; the last one in is the first out, because its buffers are most
    likely in the cache."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Opened] = []
        self._used: list[Opened] = []
        self._closed = False

    def take(self) -> Opened | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def give_back(self, opened: Opened) -> None:
        """Add a connection whose last call ended with a reply; after `close`, close it."""
        with self._lock:
            if not self._closed:
                self._idle.append(opened)
                return
        opened.connection.close()

    @contextmanager
    def in_use(self, opened: Opened) -> Iterator[None]:
        """Let `abort` end a call over `opened` inside the block."""
        self._used.append(opened)
        try:
            yield
        finally:
            self._used.remove(opened)

    def abort(self) -> None:
        """Close idle connections, and end the calls over the others."""
        self.drop()
        for opened in list(self._used):
            opened.connection.abort()

    def drop(self) -> None:
        """Close idle connections, whose pserver is gone."""
        with self._lock:
            idle, self._idle = self._idle, []
        for opened in idle:
            opened.connection.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self.drop()
