"""Who looks for a message before sleeping: where they come quickly, and not everybody."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Iterator

import pytest

from psrt.rpc import pb
from psrt.rpc.busy_poll import NEVER, BusyPoll, LatencyTracker
from psrt.rpc.stream.sockets import FrameSocket
from psrt.rpc.wire.frames import Message

LIMIT_US, LIMIT_S = 300, 300e-6
QUICK, SLOW = LIMIT_S, LIMIT_S * 1.01
PATIENCE_S = 30.0


class Looks:
    """Looks that are over at once, and what they were told."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def __call__(self, fd: int, nanoseconds: int) -> None:
        self.seen.append((fd, nanoseconds))


class Clock:
    """Stands in for `time.monotonic` where waits are measured: they take `waits`, in turn."""

    def __init__(self, waits: list[float]) -> None:
        self._times = iter([time for wait in waits for time in (0.0, wait)])

    def monotonic(self) -> float:
        return next(self._times)


def test_a_habit_of_waits_is_quick_after_two_quick_ones_more_than_slow_ones() -> None:
    for waits in itertools.product((QUICK, SLOW), repeat=6):
        habit, count = LatencyTracker(LIMIT_S), 0
        for wait in waits:
            habit.waited(wait)
            count = min(3, count + 1) if wait == QUICK else max(0, count - 1)
            assert habit.is_quick == (count >= 2), waits


def test_messages_that_come_quickly_and_slowly_in_turn_make_no_habit() -> None:
    habit = LatencyTracker(LIMIT_S)
    for _ in range(50):
        habit.waited(QUICK)
        assert not habit.is_quick
        habit.waited(SLOW)
        assert not habit.is_quick


def test_a_quick_habit_survives_one_slow_message() -> None:
    habit = LatencyTracker(LIMIT_S)
    for _ in range(50):
        habit.waited(QUICK)
    habit.waited(SLOW)
    assert habit.is_quick
    habit.waited(SLOW)
    assert not habit.is_quick


def test_without_a_limit_nothing_is_quick() -> None:
    for never in (NEVER, BusyPoll(0, Looks(), at_once=8)):
        habit = never.habit()
        for _ in range(5):
            habit.waited(0.0)
        assert not habit.is_quick


def test_a_look_is_told_socket_and_limit() -> None:
    looks = Looks()
    BusyPoll(LIMIT_US, looks, at_once=1).look(7)
    assert looks.seen == [(7, 300_000)]


def test_no_more_threads_look_than_allowed() -> None:
    inside, leave = threading.Event(), threading.Event()
    seen: list[int] = []

    def look(fd: int, nanoseconds: int) -> None:
        seen.append(fd)
        inside.set()
        assert leave.wait(PATIENCE_S)

    busy_poll = BusyPoll(LIMIT_US, look, at_once=1)
    first = threading.Thread(target=busy_poll.look, args=(1,))
    first.start()
    assert inside.wait(PATIENCE_S)
    busy_poll.look(2)
    leave.set()
    first.join(PATIENCE_S)
    busy_poll.look(3)

    assert seen == [1, 3]


def test_a_look_that_fails_frees_its_place() -> None:
    def look(fd: int, nanoseconds: int) -> None:
        raise OSError("closed")

    busy_poll = BusyPoll(LIMIT_US, look, at_once=1)
    for _ in range(2):
        with pytest.raises(OSError, match="closed"):
            busy_poll.look(1)


def test_a_single_core_looks_at_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    looks = Looks()
    BusyPoll(LIMIT_US, looks).look(1)
    assert looks.seen == []


Ends = tuple[FrameSocket, FrameSocket, Looks]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """One end that sends, one that receives and looks."""
    here, there = socket.socketpair()
    looks = Looks()
    sender = FrameSocket(here, 1 << 20)
    receiver = FrameSocket(there, 1 << 20, BusyPoll(LIMIT_US, looks, at_once=1))
    yield sender, receiver, looks
    sender.close()
    receiver.close()


def receive_all(ends: Ends, waits: list[float], monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """One message for each wait; whether the receiver looked before it."""
    sender, receiver, looks = ends
    monkeypatch.setattr("psrt.rpc.stream.sockets.time", Clock(waits))
    looked: list[bool] = []
    for number in range(len(waits)):
        sender.send(Message(pb.Header(round=number)))
        before = len(looks.seen)
        message = receiver.receive()
        assert message is not None
        assert message.header.round == number
        looked.append(len(looks.seen) > before)
    return looked


def test_a_socket_is_looked_at_once_its_messages_come_quickly(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = [QUICK, QUICK, QUICK, SLOW, SLOW, SLOW, QUICK]
    looked = receive_all(ends, waits, monkeypatch)
    assert looked == [False, False, True, True, True, False, False]


def test_a_slow_socket_is_never_looked_at(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    assert receive_all(ends, [SLOW] * 5, monkeypatch) == [False] * 5


def test_a_peer_that_closes_ends_a_quick_socket_in_order(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender, receiver, looks = ends
    receive_all(ends, [QUICK] * 3, monkeypatch)
    monkeypatch.undo()
    sender.close()
    assert receiver.receive() is None
    assert len(looks.seen) == 2
