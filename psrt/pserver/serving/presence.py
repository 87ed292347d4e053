"""Who still holds a connection: a process that is only silent may compute or read for long."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Sequence


class Presence:
    """Which processes of trainers still hold a connection; any thread may call.

    A connection is noted as any object that lives as long as it does. Processes whose carrier has
    no such object never count as gone.
    """

    def __init__(self) -> None:
        self._noted: dict[int, weakref.ref[object]] = {}  # by `id`, which a later object may get
        self._processes: dict[tuple[int, int], list[weakref.ref[object]]] = {}
        self._lock = threading.Lock()

    def knows(self, connection: object) -> bool:
        """Whether it was noted, and so belongs to a process for as long as it lives."""
        noted = self._noted.get(id(connection))
        return noted is not None and noted() is connection

    def note(self, trainer: int, incarnation: int, connection: object) -> None:
        """A call of this process came by `connection`."""
        reference = weakref.ref(connection)
        with self._lock:
            living_ones = {key: kept for key, kept in self._noted.items() if kept() is not None}
            self._noted = {**living_ones, id(connection): reference}
            of_process = self._processes.get((trainer, incarnation), [])
            living = [other for other in of_process if other() is not None]
            self._processes[trainer, incarnation] = [*living, reference]

    def is_gone(self, trainer: int, incarnation: int) -> bool:
        """Whether this process had connections and has none."""
        of_process = self._processes.get((trainer, incarnation))
        if of_process is None:
            return False
        if _any_lives(of_process):
            gc.collect()  # an error told to a caller keeps its connection in a cycle of references
        return not _any_lives(of_process)


def _any_lives(references: Sequence[weakref.ref[object]]) -> bool:
    return any(reference() is not None for reference in references)
