"""Idle connections of one client, ready for the next call."""

from __future__ import annotations

import threading

from psrt.rpc.dialing import Connection


class ConnectionPool:
    """A connection is either in here or used by exactly one call; the last one in is the first out,
    because its buffers are the warmest."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._closed = False

    def take(self) -> Connection | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def give_back(self, connection: Connection) -> None:
        """Only a connection whose last call ended with a reply may come back."""
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def drop(self) -> None:
        """Close what is idle: the pserver behind it is gone."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self.drop()
