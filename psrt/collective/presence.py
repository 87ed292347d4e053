"""Processes of a group that are there, by a store that all of them reach.

Each process counts up a number of its own every second, on a thread with a connection of its own.
After a call has failed, a process whose number stands still has ended, or was stopped; one that
left for a reason has written it down. So an error names the process at fault.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from psrt.core.threads import CrashReport, start_thread

BEAT_S = 1.0
STILL_S = 3.0
"""A process whose number stands still for so long is gone: three beats."""


class GroupPresence:
    """This process, `rank` of `size`, in a store; `store` and `own_store` are two connections."""

    def __init__(self, store: Any, own_store: Any, rank: int, size: int) -> None:
        self._store, self._beats, self._rank, self._size = store, own_store, rank, size
        self._ended = threading.Event()
        self._thread = start_thread(self._beat, "psrt-presence", CrashReport(_ignored))

    def leave(self, why: str) -> None:
        """Write down why this process leaves, and stop counting."""
        self._ended.set()
        with contextlib.suppress(RuntimeError):  # rank 0, which keeps the store, may have ended
            self._store.set(f"left/{self._rank}", why)
        self._thread.join(2 * BEAT_S)

    def missing(self, wait: Callable[[float], object] | None = None) -> list[str]:
        """Return the processes that are gone: `trainer 1`, with the reason if it gave one.

        Takes `STILL_S`, for which `wait` is called. Trainer 0 alone, if the store is gone.
        """
        others = [rank for rank in range(self._size) if rank != self._rank]
        try:
            before = [self._count(rank) for rank in others]
            (wait or self._ended.wait)(STILL_S)
            gone = [
                rank
                for rank, count in zip(others, before, strict=True)
                if self._left(rank) or self._count(rank) == count
            ]
            return [_named(rank, self._left(rank)) for rank in gone]
        except RuntimeError:
            return [_named(0, "")]

    def notes(self, name: str, note: str, timeout_s: float) -> list[str | None]:
        """Leave a note under `name`; return those of all, None for one that came too late."""
        self._store.set(f"{name}/{self._rank}", f"={note}")
        names = [f"{name}/{rank}" for rank in range(self._size)]
        with contextlib.suppress(RuntimeError):  # notes that are late are None
            self._store.wait(names, timedelta(seconds=timeout_s))
        return [self._store.get(n).decode()[1:] if self._store.check([n]) else None for n in names]

    def _beat(self) -> None:
        while not self._ended.is_set():
            try:
                self._beats.add(f"beats/{self._rank}", 1)
            except RuntimeError:
                return  # the store has ended; the next call of the group fails by itself
            self._ended.wait(BEAT_S)

    def _count(self, rank: int) -> int:
        return int(self._store.add(f"beats/{rank}", 0))

    def _left(self, rank: int) -> str:
        name = f"left/{rank}"
        return str(self._store.get(name).decode()) if self._store.check([name]) else ""


def _named(rank: int, why: str) -> str:
    return f"trainer {rank} ({why})" if why else f"trainer {rank}"


def _ignored(error: BaseException) -> None:
    """A thread that counts no more makes this process look gone, which is what it should do."""


__all__ = ["BEAT_S", "STILL_S", "GroupPresence"]
