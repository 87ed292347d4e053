"""Idle connections of one client, ready for the next call."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from psrt.rpc.dialing import Connection

NOT_ENDED: AbstractContextManager[None] = nullcontext()
"""A call that only its own thread ends."""


class ConnectionPool:
    """Connections that no call uses; the last one in is the first out, because its buffers are most
    likely in the cache."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._used: list[Connection] = []
        self._closed = False

    def take(self) -> Connection | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def give_back(self, connection: Connection) -> None:
        """Add a connection whose last call ended with a reply; after `close`, close it."""
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    @contextmanager
    def in_use(self, connection: Connection) -> Iterator[None]:
        """Let `abort` end a call over `connection` inside the block."""
        self._used.append(connection)
        try:
            yield
        finally:
            self._used.remove(connection)

    def abort(self) -> None:
        """Close idle connections, and end the calls over the others."""
        self.drop()
        for connection in list(self._used):
            connection.abort()

    def drop(self) -> None:
        """Close idle connections, whose pserver is gone."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self.drop()
