"""Waiting ends by the change or the message, or when patience is over."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from psrt.kernels.lowlevel.spin import announce, await_change, await_input, poll_input


def test_a_change_before_ends_it_at_once():
    await_change(np.array([2]), 1, 1 << 62)


def test_without_a_change_it_ends_after_some_offers_of_the_core():
    await_change(np.array([1]), 1, 10)


def test_a_change_by_another_thread_ends_it():
    counter = np.array([1])
    waiting = threading.Thread(target=await_change, args=(counter, 1, 1 << 62))
    waiting.start()

    counter[0] = 2

    waiting.join(30)
    assert not waiting.is_alive()


def test_what_several_threads_announce_is_counted_and_ends_it():
    counter, threads = np.array([0]), 4
    telling = [threading.Thread(target=announce, args=(counter,)) for _ in range(threads)]

    for thread in telling:
        thread.start()
    for seen in range(threads):
        await_change(counter, seen, 1 << 62)

    for thread in telling:
        thread.join(30)
    assert counter.tolist() == [threads]


Ends = tuple[socket.socket, socket.socket]

FOR_EVER_NS = 1 << 62


@pytest.fixture
def ends() -> Iterator[Ends]:
    here, there = socket.socketpair()
    with here, there:
        yield here, there


def test_a_message_that_is_there_ends_it_at_once_and_stays(ends: Ends):
    here, there = ends
    here.sendall(b"ab")

    await_input(there.fileno(), FOR_EVER_NS)

    assert there.recv(10) == b"ab"


def test_a_peer_that_closed_ends_it_at_once(ends: Ends):
    here, there = ends
    here.close()

    await_input(there.fileno(), FOR_EVER_NS)

    assert there.recv(10) == b""


def test_without_a_message_it_ends_after_a_while(ends: Ends):
    await_input(ends[1].fileno(), 1000)
    await_input(ends[1].fileno(), 0)


def test_a_descriptor_that_is_no_socket_is_no_message():
    await_input(-1, 1000)


def test_a_message_ends_it_or_the_core_was_needed(ends: Ends):
    here, there = ends
    scratch = np.zeros(2, np.int64)
    waiting = threading.Thread(target=poll_input, args=(there.fileno(), FOR_EVER_NS, scratch))
    waiting.start()

    here.sendall(b"a")

    waiting.join(30)
    assert not waiting.is_alive()
