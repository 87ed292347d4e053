"""The port for runners: who proves that he has the key is let in, others are not."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator

import pytest

from psrt.core.errors import JobError
from psrt.core.threads import CrashReport, start_thread
from psrt.launch.runners import RunnerPort, SocketLink
from psrt.launch.runners.listening import Caller
from psrt.launch.runners.uplink import Uplink, dialed
from tests.support.clock import ManualClock

KEY = b"k" * 32
WAIT_S = 30.0


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def port(clock: ManualClock) -> Iterator[RunnerPort]:
    port = RunnerPort("127.0.0.1", KEY, clock)
    yield port
    port.close()


def dial(port: RunnerPort, key: bytes, got: list[Uplink | JobError]) -> Callable[[], None]:
    def target() -> None:
        try:
            got.append(dialed(port.endpoint, key, 3))
        except JobError as error:
            got.append(error)

    return target


def call(port: RunnerPort) -> socket.socket:
    host, _, number = port.endpoint.rpartition(":")
    return socket.create_connection((host, int(number)), WAIT_S)


def served(port: RunnerPort, key: bytes) -> tuple[list[Caller], list[Uplink | JobError]]:
    """Serve the port while a runner dials it, until that has been let in or refused."""
    got: list[Uplink | JobError] = []
    thread = start_thread(dial(port, key, got), "dial", CrashReport())
    callers: list[Caller] = []
    while thread.is_alive():
        callers += port.accept()
    return callers, got


def test_a_runner_with_the_key_is_let_in_and_messages_go_both_ways(port: RunnerPort) -> None:
    [caller], [uplink] = served(port, KEY)
    assert isinstance(uplink, Uplink)
    assert (caller.rank, uplink.host) == (3, "127.0.0.1")
    link = SocketLink(caller.connection)

    link.send(b'{"kind": "beat"}\n')
    assert uplink.receive() == [{"kind": "beat"}]
    uplink.send("here")
    while not (received := link.receive()):
        assert received is not None
    assert json.loads(received) == {"kind": "here"}

    link.end()
    assert uplink.receive() is None
    link.close()
    os.close(uplink.read_fd)


def test_neither_side_is_taken_in_without_the_key(port: RunnerPort) -> None:
    callers, [refusal] = served(port, b"x" * 32)

    assert callers == []
    assert "is not the launcher of this job" in str(refusal)


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"x" * 10000,
        b'{"kind": "prove", "proof": ""}\n',
        b'{"kind": "dial", "rank": 0, "host": "h", "nonce": ""}\n{"kind": "prove", "proof": "0"}\n',
        b'{"kind": "dial"}\n',
    ],
)
def test_a_stranger_is_cut_off(port: RunnerPort, raw: bytes) -> None:
    with call(port) as stranger:
        stranger.sendall(raw)
        stranger.settimeout(0.01)
        while not is_cut_off(stranger):
            assert port.accept() == []


def test_a_caller_that_says_nothing_is_cut_off_after_its_time(
    port: RunnerPort, clock: ManualClock
) -> None:
    with call(port) as silent:
        silent.settimeout(0.01)
        assert port.accept() == []
        assert not is_cut_off(silent)

        clock.advance(11.0)

        while not is_cut_off(silent):
            assert port.accept() == []


def is_cut_off(caller: socket.socket) -> bool:
    try:
        while caller.recv(4096):
            pass
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True
    return True
