"""The fair lock: which holders exclude each other, and their order."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from psrt.pserver.tables.fair_lock import MOST_JOINS, FairLock

WAIT_S = 30.0


class Visit:
    """A thread that takes the lock in one way, and leaves on request."""

    def __init__(self, hold: object) -> None:
        self._hold = hold
        self._has_come, self._may_leave = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._visit)
        self._thread.start()

    def comes(self) -> Visit:
        assert self._has_come.wait(WAIT_S)
        return self

    @property
    def is_inside(self) -> bool:
        return self._has_come.is_set()

    def may_leave(self) -> None:
        """Take the lock, at any time."""
        self._may_leave.set()

    def leave(self) -> None:
        self.may_leave()
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()

    def _visit(self) -> None:
        with self._hold:  # type: ignore[attr-defined]
            self._has_come.set()
            assert self._may_leave.wait(WAIT_S)


def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        pass


def test_who_waits_comes_before_who_has_just_released() -> None:
    lock, order = FairLock(), []

    def wait() -> None:
        with lock.writes:
            order.append("waited")

    with lock.writes:
        waiting = threading.Thread(target=wait)
        waiting.start()
        until(lock._door.locked)
    with lock.writes:
        order.append("released")
    waiting.join(WAIT_S)

    assert order == ["waited", "released"]


def test_readers_are_inside_together_and_a_writer_waits_for_all_of_them() -> None:
    lock = FairLock()
    readers = [Visit(lock.reads).comes() for _ in range(3)]
    writer = Visit(lock.writes)
    until(lock._door.locked)

    for reader in readers:
        assert not writer.is_inside
        reader.leave()

    writer.comes().leave()


def test_a_reader_waits_behind_a_writer_who_waits_but_not_for_a_moment() -> None:
    lock = FairLock()
    first = Visit(lock.reads).comes()
    writer = Visit(lock.writes)
    until(lock._door.locked)

    later = Visit(lock.reads)
    Visit(lock.reads_shortly).comes().leave()

    assert not later.is_inside
    first.leave()
    writer.comes().leave()
    later.comes().leave()


def test_a_writer_is_not_kept_waiting_by_ever_more_short_readers() -> None:
    lock = FairLock()
    first = Visit(lock.reads).comes()
    writer = Visit(lock.writes)
    until(lock._door.locked)
    for _ in range(MOST_JOINS - 1):
        with lock.reads_shortly:
            pass

    one_more = Visit(lock.reads_shortly)
    first.leave()

    writer.comes()
    assert not one_more.is_inside
    writer.leave()
    one_more.comes().leave()


@pytest.mark.parametrize("way", ["reads_shortly", "writes_shortly"])
def test_who_needs_it_shortly_waits_for_who_is_inside_only(way: str) -> None:
    lock = FairLock()
    writer = Visit(lock.writes).comes()
    short = Visit(getattr(lock, way))
    other = Visit(lock.writes)
    until(lock._door.locked)

    assert not short.is_inside
    writer.leave()

    # Whichever of the two comes first, no third is before them.
    short.may_leave()
    other.leave()
    short.leave()


@pytest.mark.parametrize("way", ["reads", "reads_shortly", "writes", "writes_shortly"])
def test_an_error_inside_releases_the_lock(way: str) -> None:
    lock = FairLock()

    with pytest.raises(RuntimeError), getattr(lock, way):
        raise RuntimeError

    with lock.writes:
        assert lock._inside.locked()
    assert not lock._inside.locked()


def test_of_many_threads_writers_are_alone() -> None:
    lock, inside, reads = FairLock(), list[str](), list[str]()

    def visit(way: str) -> None:
        for _ in range(300):
            with getattr(lock, way):
                inside.append(way)
                if way.startswith("writes"):
                    assert inside == [way]
                else:
                    assert not [other for other in inside if other.startswith("writes")]
                    reads.append(way)
                inside.remove(way)

    ways = ["reads", "reads_shortly", "writes", "writes_shortly"] * 2
    failures = list[BaseException]()

    def guarded(way: str) -> None:
        try:
            visit(way)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(way,)) for way in ways]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)

    assert failures == []
    assert len(reads) == 4 * 300
