"""The proxy: it forwards, and strikes exactly where a fault says."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.faults.proxy import Direction, FaultProxy, Gate, LinkFault

WAIT_S = 20.0


@contextmanager
def echoing(*faults: LinkFault) -> Iterator[tuple[socket.socket, Gate]]:
    """A connection through a proxy to a server that sends back what it gets."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        gate = Gate(list(faults))
        proxy = FaultProxy(gate)
        door = proxy.tcp_door(lambda: f"127.0.0.1:{server.getsockname()[1]}")
        thread = threading.Thread(target=_echo, args=(server,))
        thread.start()
        with socket.create_connection(("127.0.0.1", int(door.rpartition(":")[2]))) as client:
            client.settimeout(WAIT_S)
            try:
                yield client, gate
            finally:
                proxy.close()
        thread.join(WAIT_S)
        assert not thread.is_alive()


def _echo(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection, suppress(OSError):
        while data := connection.recv(4096):
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)


def received(client: socket.socket) -> bytes:
    """All bytes until the connection ends."""
    data = b""
    with suppress(ConnectionError):
        while more := client.recv(4096):
            data += more
    return data


def test_bytes_and_the_end_of_a_connection_pass() -> None:
    with echoing() as (client, gate):
        client.sendall(b"x" * 300_000)
        client.shutdown(socket.SHUT_WR)

        assert received(client) == b"x" * 300_000
        assert gate.passed == {"up": 300_000, "down": 300_000}


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_connection_is_cut_at_its_byte(direction: Direction) -> None:
    fault = LinkFault(direction, 5, swallows=False)
    with echoing(fault) as (client, gate):
        client.sendall(b"0123456789")
        data = received(client)

    assert b"01234".startswith(data)
    assert gate.passed[direction] == 5
    assert gate.struck == [fault]


def test_a_silent_direction_takes_bytes_and_gives_none() -> None:
    with echoing(LinkFault("down", 3, swallows=True)) as (client, _):
        client.sendall(b"0123456789")
        assert client.recv(3, socket.MSG_WAITALL) == b"012"
        client.sendall(b"more")
        client.shutdown(socket.SHUT_WR)
        client.settimeout(0.2)

        with pytest.raises(TimeoutError):
            client.recv(1)


def test_a_held_link_forwards_what_waits_once_it_is_released() -> None:
    with echoing() as (client, gate):
        gate.hold("up", "down")
        client.sendall(b"late")
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.recv(1)
        client.settimeout(WAIT_S)

        gate.release()

        assert client.recv(4, socket.MSG_WAITALL) == b"late"


def test_descriptors_travel_along(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("contents")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "real"))
        server.listen()
        proxy = FaultProxy(Gate())
        door = proxy.unix_door(str(tmp_path / "real"), tmp_path / "door")
        with socket.socket(socket.AF_UNIX) as client, (tmp_path / "file").open() as file:
            client.connect(door)
            socket.send_fds(client, [b"one"], [file.fileno()])
            connection, _ = server.accept()
            with connection:
                data, descriptors, _, _ = socket.recv_fds(connection, 16, 1)
        proxy.close()

    with os.fdopen(descriptors[0]) as passed:
        assert (data, passed.read()) == (b"one", "contents")
