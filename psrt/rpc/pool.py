"""Idle connections of one client, ready for the next call."""

from __future__ import annotations

import threading

from psrt.rpc.dialing import Connection


class ConnectionPool:
    """Connections that no call uses; the last one in is the first out, because its buffers are most
    likely in the cache."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
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
