"""The connections of each trainer's process, by which a pserver detects that it is gone."""

from __future__ import annotations

import threading
import weakref

from psrt.pserver.serving.request_headers import caller_of
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.serving import Peer

_NO_PRESENCE = (Method.HELLO, Method.STATUS, Method.PART, Method.CHECKPOINT)
"""Calls that any process may make, and HELLO, whose connection ends with its reply."""

_Reference = weakref.ref[Peer]


class TrainerConnections:
    """Connections by trainer and incarnation; any thread may call.

    A connection is a `Peer` that lasts. It has ended once its carrier reports that, or no longer
    keeps it.
    """

    def __init__(self) -> None:
        self._added: dict[int, _Reference] = {}  # by `id`, which a later object may get
        self._processes: dict[tuple[int, int], list[_Reference]] = {}
        self._lock = threading.Lock()

    def has(self, connection: Peer) -> bool:
        """Return True if `connection` was added; it belongs to one process for its whole life."""
        added = self._added.get(id(connection))
        return added is not None and added() is connection

    def track(self, header: pb.Header, connection: Peer) -> None:
        """Record the connection of a call, if it is one of a trainer."""
        if header.method not in _NO_PRESENCE:
            self.add(*caller_of(header), connection)

    def add(self, trainer: int, incarnation: int, connection: Peer) -> None:
        """Record that a call of this process came over `connection`."""
        reference = weakref.ref(connection)
        with self._lock:
            living = {key: kept for key, kept in self._added.items() if kept() is not None}
            self._added = {**living, id(connection): reference}
            of_process = self._processes.get((trainer, incarnation), [])
            others = [other for other in of_process if _lives(other)]
            self._processes[trainer, incarnation] = [*others, reference]

    def is_gone(self, trainer: int, incarnation: int) -> bool | None:
        """Return True if this process has no connection left, None if it never had one."""
        of_process = self._processes.get((trainer, incarnation))
        if of_process is None:
            return None
        return not any(_lives(connection) for connection in of_process)


def _lives(reference: _Reference) -> bool:
    connection = reference()
    return connection is not None and not connection.has_left
