"""The connections of each trainer's process, by which a pserver detects that it is gone."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Sequence


class TrainerConnections:
    """Connections by trainer and incarnation; any thread may call.

    A connection is any object that lives as long as it does. A process whose carrier has no such
    object never counts as gone: a silent process may compute or read for long.
    """

    def __init__(self) -> None:
        self._added: dict[int, weakref.ref[object]] = {}  # by `id`, which a later object may get
        self._processes: dict[tuple[int, int], list[weakref.ref[object]]] = {}
        self._lock = threading.Lock()

    def has(self, connection: object) -> bool:
        """Return True if `connection` was added; it belongs to one process for its whole life."""
        added = self._added.get(id(connection))
        return added is not None and added() is connection

    def add(self, trainer: int, incarnation: int, connection: object) -> None:
        """Record that a call of this process came over `connection`."""
        reference = weakref.ref(connection)
        with self._lock:
            living = {key: kept for key, kept in self._added.items() if kept() is not None}
            self._added = {**living, id(connection): reference}
            of_process = self._processes.get((trainer, incarnation), [])
            others = [other for other in of_process if other() is not None]
            self._processes[trainer, incarnation] = [*others, reference]

    def is_gone(self, trainer: int, incarnation: int) -> bool:
        """Return True if this process had connections and has none left."""
        of_process = self._processes.get((trainer, incarnation))
        if of_process is None:
            return False
        if _any_lives(of_process):
            gc.collect()  # an error sent to a caller keeps its connection in a reference cycle
        return not _any_lives(of_process)


def _any_lives(references: Sequence[weakref.ref[object]]) -> bool:
    return any(reference() is not None for reference in references)
