"""A fair readers-writer lock: a thread that takes it repeatedly does not keep out the others."""

from __future__ import annotations

import threading
from collections.abc import Callable

MOST_JOINS = 100


class FairLock:
    """Held by one thread that `writes`, or by any number that `reads`.

    A waiting thread holds `_door` while it waits for `_inside`. A plain lock goes to the first
    thread that asks after a release, which is the one that has just released it; here that thread
    finds the door taken. So work in slices, each under the lock, lets others in between.

    A thread that needs the lock `shortly` bypasses the door: it waits for the holder only, and a
    reader not even for other readers. After `MOST_JOINS` such readers in a row the next one uses
    the door, so that no writer waits for ever.
    """

    def __init__(self) -> None:
        self._door = threading.Lock()
        self._inside = threading.Lock()
        self._counting = threading.Lock()  # guards `_readers`; the first waits holding it
        self._readers = 0
        self._joins = 0  # of readers since there was none
        self.reads = _Hold(self._read_in_turn, self._stop_reading)
        self.reads_shortly = _Hold(self._read_shortly, self._stop_reading)
        self.writes = _Hold(self._write_in_turn, self._inside.release)
        self.writes_shortly = _Hold(self._inside.acquire, self._inside.release)

    def _write_in_turn(self) -> None:
        with self._door:
            self._inside.acquire()

    def _read_in_turn(self) -> None:
        with self._door:
            self._read()

    def _read_shortly(self) -> None:
        if self._joins < MOST_JOINS:
            self._read()
        else:
            self._read_in_turn()

    def _read(self) -> None:
        with self._counting:
            if not self._readers:
                self._inside.acquire()
                self._joins = 0
            self._readers += 1
            self._joins += 1

    def _stop_reading(self) -> None:
        with self._counting:
            self._readers -= 1
            if not self._readers:
                self._inside.release()


class _Hold:
    """A context manager for one way to hold the lock."""

    def __init__(self, take: Callable[[], object], release: Callable[[], None]) -> None:
        self._take, self._release = take, release

    def __enter__(self) -> None:
        self._take()

    def __exit__(self, *_: object) -> None:
        self._release()
