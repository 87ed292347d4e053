"""Busy polling: only sockets with quick messages, by a bounded number of threads."""

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


class Polls:
    """Polls that return at once, and records their arguments."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def __call__(self, fd: int, nanoseconds: int) -> None:
        self.seen.append((fd, nanoseconds))


class Clock:
    """Replaces `time` where waits are measured: they take `waits`, in turn."""

    def __init__(self, waits: list[float]) -> None:
        self._times = iter([time for wait in waits for time in (0.0, wait)])

    def monotonic(self) -> float:
        return next(self._times)


def test_a_tracker_is_quick_after_two_quick_waits_more_than_slow_ones() -> None:
    for waits in itertools.product((QUICK, SLOW), repeat=6):
        tracker, count = LatencyTracker(LIMIT_S), 0
        for wait in waits:
            tracker.record(wait)
            count = min(3, count + 1) if wait == QUICK else max(0, count - 1)
            assert tracker.is_quick == (count >= 2), waits


def test_quick_and_slow_messages_in_turn_are_never_quick() -> None:
    tracker = LatencyTracker(LIMIT_S)
    for _ in range(50):
        tracker.record(QUICK)
        assert not tracker.is_quick
        tracker.record(SLOW)
        assert not tracker.is_quick


def test_a_quick_tracker_survives_one_slow_message() -> None:
    tracker = LatencyTracker(LIMIT_S)
    for _ in range(50):
        tracker.record(QUICK)
    tracker.record(SLOW)
    assert tracker.is_quick
    tracker.record(SLOW)
    assert not tracker.is_quick


def test_without_a_limit_nothing_is_quick() -> None:
    for never in (NEVER, BusyPoll(0, Polls(), at_once=8)):
        tracker = never.tracker()
        for _ in range(5):
            tracker.record(0.0)
        assert not tracker.is_quick


def test_a_poll_gets_socket_and_limit() -> None:
    polls = Polls()
    BusyPoll(LIMIT_US, polls, at_once=1).poll(7)
    assert polls.seen == [(7, 300_000)]


def test_at_most_the_allowed_number_of_threads_poll() -> None:
    inside, leave = threading.Event(), threading.Event()
    seen: list[int] = []

    def poll(fd: int, nanoseconds: int) -> None:
        seen.append(fd)
        inside.set()
        assert leave.wait(PATIENCE_S)

    busy_poll = BusyPoll(LIMIT_US, poll, at_once=1)
    first = threading.Thread(target=busy_poll.poll, args=(1,))
    first.start()
    assert inside.wait(PATIENCE_S)
    busy_poll.poll(2)
    leave.set()
    first.join(PATIENCE_S)
    busy_poll.poll(3)

    assert seen == [1, 3]


def test_a_poll_that_fails_frees_its_slot() -> None:
    def poll(fd: int, nanoseconds: int) -> None:
        raise OSError("closed")

    busy_poll = BusyPoll(LIMIT_US, poll, at_once=1)
    for _ in range(2):
        with pytest.raises(OSError, match="closed"):
            busy_poll.poll(1)


def test_a_single_core_never_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    polls = Polls()
    BusyPoll(LIMIT_US, polls).poll(1)
    assert polls.seen == []


Ends = tuple[FrameSocket, FrameSocket, Polls]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """One end that sends, one that receives and polls."""
    here, there = socket.socketpair()
    polls = Polls()
    sender = FrameSocket(here, 1 << 20)
    receiver = FrameSocket(there, 1 << 20, BusyPoll(LIMIT_US, polls, at_once=1))
    yield sender, receiver, polls
    sender.close()
    receiver.close()


def receive_all(ends: Ends, waits: list[float], monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """One message for each wait; whether the receiver polled before it."""
    sender, receiver, polls = ends
    monkeypatch.setattr("psrt.rpc.stream.sockets.time", Clock(waits))
    polled: list[bool] = []
    for number in range(len(waits)):
        sender.send(Message(pb.Header(round=number)))
        before = len(polls.seen)
        message = receiver.receive()
        assert message is not None
        assert message.header.round == number
        polled.append(len(polls.seen) > before)
    return polled


def test_a_socket_is_polled_once_its_messages_come_quickly(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = [QUICK, QUICK, QUICK, SLOW, SLOW, SLOW, QUICK]
    polled = receive_all(ends, waits, monkeypatch)
    assert polled == [False, False, True, True, True, False, False]


def test_a_slow_socket_is_never_polled(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    assert receive_all(ends, [SLOW] * 5, monkeypatch) == [False] * 5


def test_a_peer_that_closes_ends_a_quick_socket_in_order(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender, receiver, polls = ends
    receive_all(ends, [QUICK] * 3, monkeypatch)
    monkeypatch.undo()
    sender.close()
    assert receiver.receive() is None
    assert len(polls.seen) == 2
