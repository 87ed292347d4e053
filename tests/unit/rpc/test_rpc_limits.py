"""Limits of the memory that callers occupy in a pserver, and errors beyond them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import grpc
import numpy as np
import pytest

from psrt.core.errors import ErrorCode, UnavailableError, WireError
from psrt.core.threads import CrashReport
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.grpc_.grpc_carrier import GrpcConnection
from psrt.rpc.methods import Method
from psrt.rpc.server import Server
from psrt.rpc.serving import Peer
from psrt.rpc.stream import sockets, stream_server
from psrt.rpc.stream.sockets import FrameSocket
from psrt.rpc.stream.stream import StreamConnection, connect_tcp, connect_unix
from psrt.rpc.wire import buffers
from psrt.rpc.wire.buffers import aligned_empty, room_for
from psrt.rpc.wire.frames import Message, encode
from psrt.rpc.wire.pieces import Joiner, split
from psrt.rpc.wire.preamble import preamble
from tests.support.carriers import AT_ONCE
from tests.support.raw_stream import error_in, everything, opened

MIB = 1 << 20
MORE_THAN_THERE_IS = 1 << 60
WAIT_S = 10.0
PULL = Message(pb.Header(protocol=1, method=Method.PULL, request_id=9))


def zeros(request: Message, peer: Peer) -> Message:
    """Answers with as many bytes as the round says."""
    return Message(pb.Header(), [np.zeros(request.header.round, np.uint8)])


Start = Callable[..., Server]


@pytest.fixture
def crashes() -> CrashReport:
    return CrashReport()


@pytest.fixture
def start(crashes: CrashReport) -> Iterator[Start]:
    servers: list[Server] = []

    def build(**options: object) -> Server:
        servers.append(Server(zeros, unix_dir="", crashes=crashes, **options))  # type: ignore[arg-type]
        servers[-1].start()
        return servers[-1]

    yield build
    for server in servers:
        server.stop(0.0)
    assert crashes.error is None


def dial(server: Server) -> StreamConnection:
    return connect_tcp(server.data_endpoints[0], WAIT_S)


def tell(server: Server, data: bytes) -> pb.Error:
    """Send raw bytes, hang up, and return the error that comes back."""
    with opened(server) as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        return error_in(everything(sock))


# --- what is announced ----------------------------------------------------------------------------


def test_a_message_gets_room_for_twice_what_has_come_and_64_mib_at_first() -> None:
    assert room_for(MIB, 20) == MIB
    assert room_for(1 << 40, 20) == 64 * MIB + 20
    assert room_for(1 << 40, 100 * MIB) == 200 * MIB
    assert room_for(150 * MIB, 100 * MIB) == 150 * MIB


def test_more_bytes_than_there_are_are_a_named_error() -> None:
    with pytest.raises(WireError, match=r"no memory for \d+ bytes of a message") as caught:
        aligned_empty(MORE_THAN_THERE_IS)

    assert caught.value.code == ErrorCode.WIRE_TOO_LARGE


@pytest.mark.parametrize("sent", [20, 300_000])
def test_a_frame_that_is_announced_and_does_not_come_takes_no_memory(
    start: Start, sent: int
) -> None:
    server = start(max_message_bytes=1 << 61)

    error = tell(server, preamble(MORE_THAN_THERE_IS) + b"\n" * sent)

    assert error.code == ErrorCode.WIRE_TRUNCATED
    assert f"{sent} bytes arrived, {MORE_THAN_THERE_IS} were announced" in error.message


def test_a_split_message_that_is_announced_and_does_not_come_takes_no_memory(start: Start) -> None:
    server = start(max_message_bytes=1 << 61)
    header = pb.Header(protocol=1, method=3, payload_bytes=MORE_THAN_THERE_IS)
    first = pb.Frame(header=header, payload=b"x").SerializeToString()

    with grpc.insecure_channel(server.endpoint) as channel:
        large = channel.stream_stream("/psrt.v1.Pserver/CallLarge")
        with pytest.raises(grpc.RpcError) as caught:
            next(large(iter([first]), timeout=WAIT_S))

    assert caught.value.code() == grpc.StatusCode.DATA_LOSS


def test_messages_arrive_whole_in_buffers_that_grow_and_that_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(buffers, "_PREALLOCATED_BYTES", 1000)
    taken: list[int] = []
    empty = buffers._empty
    monkeypatch.setattr(buffers, "_empty", lambda size: taken.append(size) or empty(size))
    near, far = socket.socketpair()
    sender, receiver = FrameSocket(near, MIB << 3), FrameSocket(far, MIB << 3)
    rows = np.random.default_rng(1).integers(0, 255, 3 * MIB, np.uint8)
    small = rows[:10]

    def send() -> None:
        for _ in range(2):
            sender.send(Message(pb.Header(step=1), [rows]))
            sender.send(Message(pb.Header(step=2), [small]))

    sending = threading.Thread(target=send)
    sending.start()
    arrived = [receiver.receive().tensors[0].copy() for _ in range(4)]  # type: ignore[union-attr]
    sending.join()
    sender.close()
    receiver.close()

    assert all(np.array_equal(a, b) for a, b in zip(arrived, [rows, small] * 2, strict=True))
    assert taken == sorted(set(taken)), "each larger than the one before, the last one kept"
    assert taken[0] == 64 * 1024
    assert taken[-1] == 4 * MIB


def test_a_split_message_is_joined_in_memory_that_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers, "_PREALLOCATED_BYTES", 1000)
    values = np.random.default_rng(1).random(5000)
    joiner = Joiner()

    for piece in split(Message(pb.Header(), [values]), piece_bytes=700):
        joiner.add(piece)

    assert np.array_equal(joiner.message().tensors[0], values)


def test_a_connection_that_finds_no_memory_ends_with_a_reason_and_no_other(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start()
    frame = b"".join(encode(PULL))

    def nothing_left(buffer: object) -> Message:
        raise MemoryError

    with opened(server) as sock, monkeypatch.context() as patched:
        patched.setattr(sockets, "decode", nothing_left)
        sock.sendall(preamble(len(frame)) + frame)
        sock.shutdown(socket.SHUT_WR)
        reply_bytes = everything(sock)
    error = error_in(reply_bytes)
    other = dial(server)
    reply = other.call(PULL, WAIT_S)
    other.close()

    assert error.code == ErrorCode.WIRE_TOO_LARGE
    assert "no memory" in error.message
    assert not reply.header.HasField("error")


# --- connections ----------------------------------------------------------------------------------


def test_one_connection_too_many_is_refused_by_name_and_room_is_made_as_others_close(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    server = start(max_connections=2, host_share=1.0)
    first, second = dial(server), connect_unix(server.unix_path, WAIT_S)
    served = [connection.call(PULL, WAIT_S) for connection in (first, second)]

    for third in (dial(server), connect_unix(server.unix_path, WAIT_S)):
        with pytest.raises(UnavailableError, match="has 2 connections, as many as it may"):
            third.call(PULL, WAIT_S)
        third.close()
    first.close()
    again = Client(server.endpoint, 0, 1, "stream", pb.Hello(), retry=AT_ONCE)
    again.connect(WAIT_S)
    served.append(again.call(Method.PULL, timeout_s=WAIT_S))
    again.close()
    second.close()

    assert not any(reply.header.HasField("error") for reply in served)
    refused = [record for record in caplog.records if "refused the connection of" in record.message]
    assert len(refused) >= 2
    assert "max_connections" in refused[0].message


def test_a_caller_who_sends_much_at_once_still_reads_why_it_was_refused(start: Start) -> None:
    server = start(max_connections=1, host_share=1.0)
    only = dial(server)
    only.call(PULL, WAIT_S)
    header = pb.Header(protocol=1, method=Method.PUSH, request_id=3)

    one_more = dial(server)
    with pytest.raises(UnavailableError):
        one_more.call(Message(header, [np.zeros(8 * MIB, np.uint8)]), WAIT_S)
    one_more.close()
    only.close()


def test_a_process_that_can_start_no_thread_refuses_the_connection_and_serves_the_others(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start()
    first = dial(server)
    first.call(PULL, WAIT_S)

    def no_thread(*args: object) -> threading.Thread:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(stream_server, "start_thread", no_thread)
        refused = dial(server)
        with pytest.raises(UnavailableError, match="1 connections, and cannot start another"):
            refused.call(PULL, WAIT_S)
        refused.close()
        reply = first.call(PULL, WAIT_S)
    later = dial(server)
    replies = [reply, later.call(PULL, WAIT_S)]
    later.close()
    first.close()

    assert not any(reply.header.HasField("error") for reply in replies)


# --- too large ------------------------------------------------------------------------------------


def test_a_connection_that_was_closed_over_a_request_is_not_used_again(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    server = start(max_message_bytes=MIB)
    client = Client(server.endpoint, 0, 1, "stream", pb.Hello(), retry=AT_ONCE)
    client.connect(WAIT_S)
    header, tensors = pb.Header(push_key=client.next_push_key()), [np.zeros(8 * MIB, np.uint8)]

    with pytest.raises(WireError, match=f"the limit is {MIB}") as caught:
        client.call(Method.PUSH, header=header, tensors=tensors, timeout_s=WAIT_S)
    client.call(Method.PULL, timeout_s=WAIT_S)
    client.close()

    assert caught.value.code == ErrorCode.WIRE_TOO_LARGE
    assert "Trying again" not in caplog.text


@pytest.mark.parametrize("carrier", ["stream", "grpc"])
@pytest.mark.parametrize("limit", [MIB, 8 * MIB])
def test_a_reply_over_the_limit_is_refused_and_the_connection_stays(
    start: Start, carrier: str, limit: int
) -> None:
    server = start(max_message_bytes=limit)
    client = Client(server.endpoint, 0, 1, carrier, pb.Hello(), retry=AT_ONCE)  # type: ignore[arg-type]
    client.connect(WAIT_S)

    def pull(size_bytes: int) -> int:
        header = pb.Header(round=size_bytes)
        return client.call(Method.PULL, header=header, timeout_s=WAIT_S).tensors[0].nbytes

    sizes = [pull(limit // 2)]
    with pytest.raises(WireError) as caught:
        pull(limit + 1)
    sizes.append(pull(limit // 2))
    client.close()

    assert caught.value.code == ErrorCode.WIRE_TOO_LARGE
    assert f"the limit is {limit}" in caught.value.message
    assert sizes == [limit // 2] * 2


def test_a_request_over_a_small_limit_is_refused_over_grpc_too(start: Start) -> None:
    connection = GrpcConnection(start(max_message_bytes=MIB).endpoint)

    reply = connection.call(Message(PULL.header, [np.zeros(2 * MIB, np.uint8)]), WAIT_S)
    connection.close()

    assert reply.header.error.code == ErrorCode.WIRE_TOO_LARGE


def test_calls_go_on_as_unary_ones_after_a_reply_that_no_call_could_have_brought(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = GrpcConnection(start(max_message_bytes=8 * MIB).endpoint)
    header = pb.Header(protocol=1, method=Method.PULL, round=9 * MIB)
    refused = connection.call(Message(header), WAIT_S)
    monkeypatch.setattr(connection, "_stream", None)

    reply = connection.call(PULL, WAIT_S)
    connection.close()

    assert refused.header.error.code == ErrorCode.WIRE_TOO_LARGE
    assert not reply.header.HasField("error")


@pytest.mark.parametrize("carrier", ["stream", "grpc"])
def test_a_handler_is_told_how_large_its_reply_may_be(carrier: str) -> None:
    told: list[int] = []

    def note(request: Message, peer: Peer) -> Message:
        told.append(request.reply_limit)
        return Message(pb.Header())

    server = Server(note, max_message_bytes=3 * MIB)
    server.start()
    client = Client(server.endpoint, 0, 1, carrier, pb.Hello(), retry=AT_ONCE)  # type: ignore[arg-type]
    client.connect(WAIT_S)
    client.call(Method.PULL, timeout_s=WAIT_S)
    client.close()
    server.stop(0.0)

    assert set(told) == {3 * MIB}
