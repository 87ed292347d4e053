"""OPEN, the first call of a stream connection: what a stranger can occupy before it is little."""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

from psrt.core.errors import ErrorCode, UnavailableError
from psrt.rpc import pb, unfinished
from psrt.rpc.methods import Method
from psrt.rpc.server import Server
from psrt.rpc.serving import Peer
from psrt.rpc.stream import lobby, stream_server
from psrt.rpc.stream.stream import StreamConnection, connect_tcp
from psrt.rpc.unfinished import UnfinishedFrames
from psrt.rpc.wire.frames import Message
from psrt.rpc.wire.header_limits import GREETING_BYTES
from psrt.rpc.wire.preamble import PREAMBLE_BYTES, preamble
from tests.support.carriers import eventually
from tests.support.raw_stream import dial, error_in, everything, frame, opened

MIB = 1 << 20
WAIT_S = 10.0


def echo(request: Message, peer: Peer) -> Message:
    return Message(pb.Header(), list(request.tensors))


@pytest.fixture
def server() -> Iterator[Server]:
    built = Server(echo, max_connections=8)
    built.start()
    yield built
    built.stop(0.0)


def called(server: Server) -> StreamConnection:
    """A connection that has made a call."""
    connection = connect_tcp(server.data_endpoints[0], WAIT_S)
    reply = connection.call(Message(pb.Header(protocol=1, method=Method.PULL)), WAIT_S)
    assert not reply.header.HasField("error")
    return connection


def test_a_connection_that_begins_with_another_call_is_refused(server: Server) -> None:
    with dial(server) as sock:
        sock.sendall(frame(Method.STATUS))
        sock.shutdown(socket.SHUT_WR)

        error = error_in(everything(sock))

    assert error.code == ErrorCode.ACCESS_DENIED
    assert "first call of a connection is OPEN" in error.message


def test_a_stranger_may_send_a_few_kilobytes_only(server: Server) -> None:
    with dial(server) as sock:
        sock.sendall(preamble(GREETING_BYTES + 1))

        error = error_in(everything(sock))

    assert error.code == ErrorCode.WIRE_TOO_LARGE
    assert f"the limit is {GREETING_BYTES}" in error.message


def test_a_stranger_that_stays_silent_is_hung_up_on(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lobby, "OPEN_S", 0.05)

    with dial(server) as sock:
        assert everything(sock) == b""


def test_silent_strangers_do_not_keep_callers_out(server: Server) -> None:
    opened = called(server)
    strangers = [dial(server) for _ in range(20)]

    connection = called(server)

    connection.close()
    opened.close()
    for each in strangers:
        each.close()


def test_a_stranger_that_begins_and_does_not_go_on_is_hung_up_on(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lobby, "OPEN_S", 0.2)

    with dial(server) as sock:
        sock.sendall(frame(Method.OPEN)[:-1])
        assert everything(sock) == b""


@pytest.mark.parametrize("sent", [0, PREAMBLE_BYTES - 1])
def test_strangers_that_have_not_sent_a_preamble_have_no_thread(server: Server, sent: int) -> None:
    strangers = [dial(server) for _ in range(20)]
    for each in strangers:
        each.sendall(frame(Method.OPEN)[:sent])
    eventually(lambda: len(server._stream._lobby) == 20, "the strangers", WAIT_S)

    called(server).close()

    assert server._stream._accepted == 1
    for each in strangers:
        each.sendall(frame(Method.OPEN)[sent:])
        assert each.recv(1) == b"P"
        each.close()
        eventually(lambda: not server._stream._connections, "its end", WAIT_S)
    assert server._stream._accepted == 21


def test_a_slow_stranger_at_a_unix_socket_has_no_thread() -> None:
    server = Server(echo, unix_dir="")
    server.start()
    call = frame(Method.OPEN)
    with socket.socket(socket.AF_UNIX) as slow, socket.socket(socket.AF_UNIX) as gone:
        for sock in (slow, gone):
            sock.connect(server.unix_path)
            sock.settimeout(WAIT_S)
        for number in range(PREAMBLE_BYTES - 1):
            slow.sendall(call[number : number + 1])
        gone.sendall(call[:1])
        gone.shutdown(socket.SHUT_WR)
        assert everything(gone) == b""
        assert server._stream._accepted == 0

        slow.sendall(call[PREAMBLE_BYTES - 1 :])
        assert slow.recv(1) == b"P"
    assert server._stream._accepted == 1
    server.stop(0.0)


def test_a_stranger_that_leaves_is_forgotten(server: Server) -> None:
    with dial(server):
        eventually(lambda: len(server._stream._lobby) == 1, "the stranger", WAIT_S)

    eventually(lambda: len(server._stream._lobby) == 0, "its end", WAIT_S)
    assert server._stream._accepted == 0


@pytest.mark.parametrize(
    ("room", "limit", "sent"), [(lobby, "MOST_WAITING", 0), (stream_server, "MOST_STRANGERS", -1)]
)
def test_the_oldest_stranger_makes_room(
    server: Server, monkeypatch: pytest.MonkeyPatch, room: ModuleType, limit: str, sent: int
) -> None:
    monkeypatch.setattr(room, limit, 1)
    call = frame(Method.OPEN)

    with dial(server) as first, dial(server) as second:
        first.sendall(call[:sent])
        second.sendall(call[:sent])
        assert everything(first) == b""
        second.sendall(call[sent:])
        assert second.recv(1) == b"P"


def test_a_frame_that_does_not_arrive_in_time_ends_its_connection(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished, "GRACE_S", 0.05)
    late = frame(Method.PUSH, np.zeros(MIB, np.uint8))

    with opened(server) as sock:
        sock.sendall(late[: len(late) // 2])
        assert everything(sock) == b""


def test_a_connection_may_be_idle_between_two_calls(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished, "GRACE_S", 0.05)
    monkeypatch.setattr(lobby, "OPEN_S", 0.05)
    large = Message(pb.Header(protocol=1, method=Method.PUSH), [np.zeros(MIB, np.uint8)])
    connection = called(server)
    connection.call(large, WAIT_S)

    threading.Event().wait(0.2)  # nothing may happen in this time

    assert len(connection.call(large, WAIT_S).tensors[0]) == MIB
    connection.close()


def test_unfinished_frames_have_a_limit_together() -> None:
    frames = UnfinishedFrames(10 * MIB, host_share=1.0)

    with (
        frames.expect("a", 6 * MIB),
        pytest.raises(UnavailableError, match="6291456 bytes of others"),
    ):
        frames.expect("a", 6 * MIB).__enter__()
    with frames.expect("a", 30 * MIB):  # one alone may be larger
        pass
    with frames.expect("a", 6 * MIB), frames.expect("a", 4 * MIB):
        pass


def test_a_message_beyond_that_limit_is_tried_again_later() -> None:
    server = Server(echo, unfinished_bytes=3 * MIB, host_share=1.0)
    server.start()
    half = frame(Method.PUSH, np.zeros(2 * MIB, np.uint8))
    header = pb.Header(protocol=1, method=Method.PUSH, request_id=2)
    large = Message(header, [np.zeros(2 * MIB, np.uint8)])
    with opened(server) as sock:
        sock.sendall(half[:MIB])
        eventually(lambda: server._stream._unfinished._bytes > 0, "half of a frame", WAIT_S)

        connection = called(server)
        with pytest.raises(UnavailableError, match="was refused"):
            connection.call(large, WAIT_S)
        connection.close()

    eventually(lambda: server._stream._unfinished._bytes == 0, "its end", WAIT_S)
    connection = called(server)
    assert len(connection.call(large, WAIT_S).tensors[0]) == 2 * MIB
    connection.close()
    server.stop(0.0)


# --- shares of hosts ------------------------------------------------------------------------------


def test_a_host_may_have_a_share_of_the_bytes_under_way() -> None:
    frames = UnfinishedFrames(10 * MIB, host_share=0.5)

    with frames.expect("a", 4 * MIB):
        with pytest.raises(UnavailableError, match="Host a has 4194304 bytes under way"):
            frames.expect("a", 4 * MIB).__enter__()
        with frames.expect("b", 4 * MIB):
            pass
    with frames.expect("a", 9 * MIB):  # one alone may be larger
        pass


def test_a_host_may_have_a_share_of_the_connections() -> None:
    server = Server(echo, max_connections=8, host_share=0.25)
    server.start()
    connections = [called(server) for _ in range(2)]

    refused = connect_tcp(server.data_endpoints[0], WAIT_S)
    with pytest.raises(UnavailableError, match=r"has 2 connections of host 127.0.0.1"):
        refused.call(Message(pb.Header(protocol=1, method=Method.PULL)), WAIT_S)
    refused.close()
    connections.pop().close()
    eventually(lambda: len(server._stream._connections) == 1, "the end of a connection", WAIT_S)
    connections.append(called(server))

    for each in connections:
        each.close()
    server.stop(0.0)


@pytest.mark.parametrize(
    ("room", "limit", "sent"), [(lobby, "MOST_WAITING", 0), (stream_server, "MOST_STRANGERS", -1)]
)
def test_strangers_of_one_host_do_not_drive_out_those_of_another(
    server: Server, monkeypatch: pytest.MonkeyPatch, room: ModuleType, limit: str, sent: int
) -> None:
    monkeypatch.setattr(room, limit, 3)
    host, port = server.data_endpoints[0].rsplit(":", 1)
    call = frame(Method.OPEN)

    with socket.create_connection((host, int(port)), WAIT_S, ("127.0.0.9", 0)) as honest:
        honest.sendall(call[:sent])
        eventually(lambda: _strangers(server) == 1, "the first stranger", WAIT_S)
        crowd = [dial(server) for _ in range(20)]
        for each in crowd:
            each.sendall(call[:sent])
        for each in crowd[:-3]:
            assert everything(each) == b""
        honest.sendall(call[sent:])

        assert honest.recv(1) == b"P"
    for each in crowd:
        each.close()


def _strangers(server: Server) -> int:
    return len(server._stream._lobby) + len(server._stream._strangers)


def test_a_host_has_a_share_of_the_lobby(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lobby, "MOST_WAITING", 4)
    crowd = [dial(server) for _ in range(4)]

    assert everything(crowd[0]) == b""
    eventually(lambda: len(server._stream._lobby) == 3, "three of four places", WAIT_S)
    for each in crowd:
        each.close()


def test_the_lobby_leaves_most_descriptors_to_others(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda kind: (16, 16))
    crowd = [dial(server) for _ in range(4)]

    assert everything(crowd[0]) == b""
    for each in crowd:
        each.close()


def test_without_descriptors_the_oldest_stranger_makes_room(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = server._stream._lobby
    with dial(server) as first:
        eventually(lambda: len(waiting) == 1, "the first stranger", WAIT_S)
        enter, failures = waiting._enter, [OSError(errno.EMFILE, "planted")]

        def fails_once(sock: socket.socket, address: object, name: str) -> None:
            if failures:
                sock.close()
                raise failures.pop()
            enter(sock, address, name)

        monkeypatch.setattr(waiting, "_enter", fails_once)
        dial(server).close()

        assert everything(first) == b""
