"""Bytes of strangers: a clear error or a closed connection, and the server stays up."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import grpc
import numpy as np
import pytest

from psrt.core.errors import ErrorCode
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.server import Server
from psrt.rpc.serving import Peer
from psrt.rpc.status import ERROR_METADATA
from psrt.rpc.stream.stream import connect_tcp
from psrt.rpc.wire.frames import Message, decode, encode
from psrt.rpc.wire.preamble import parse_preamble, preamble
from tests.support.raw_stream import error_in, everything, opened

LIMIT = 1 << 20
WAIT_S = 10.0


def echo(request: Message, peer: Peer) -> Message:
    return Message(pb.Header(), list(request.tensors))


@pytest.fixture
def server() -> Iterator[Server]:
    built = Server(echo, max_message_bytes=LIMIT)
    built.start()
    yield built
    built.stop(0.0)


def still_serves(server: Server) -> bool:
    connection = connect_tcp(server.data_endpoints[0], WAIT_S)
    request = Message(pb.Header(protocol=1, method=Method.PULL), [np.arange(3)])
    reply = connection.call(request, WAIT_S)
    connection.close()
    return bool(reply.tensors[0].tolist() == [0, 1, 2])


def tell(server: Server, data: bytes, *, hang_up: bool = False) -> bytes:
    """Send raw bytes to the stream port and return all that comes back until it closes."""
    with opened(server) as sock:
        sock.sendall(data)
        if hang_up:
            sock.shutdown(socket.SHUT_WR)
        return everything(sock)


def call_frame(**fields: int) -> bytes:
    header = pb.Header(**{"protocol": 1, "method": Method.PULL} | fields)
    return b"".join(encode(Message(header)))


# --- stream ---------------------------------------------------------------------------------------


def test_http_client_on_the_stream_port_is_hung_up_on(server: Server) -> None:
    assert tell(server, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", hang_up=True) == b""
    assert still_serves(server)


def test_preamble_of_another_version_is_answered_with_both_versions(server: Server) -> None:
    error = error_in(tell(server, preamble(10, version=9)))

    assert error.code == ErrorCode.WIRE_VERSION
    assert "version 9" in error.message
    assert still_serves(server)


def test_oversized_frame_is_refused_before_it_is_received(server: Server) -> None:
    error = error_in(tell(server, preamble(1 << 62) + bytes(100_000)))

    assert error.code == ErrorCode.WIRE_TOO_LARGE
    assert str(LIMIT) in error.message
    assert still_serves(server)


@pytest.mark.parametrize("cut", [3, 16, 20])
def test_frame_that_ends_early_is_answered_as_truncated(server: Server, cut: int) -> None:
    frame = call_frame()

    error = error_in(tell(server, (preamble(len(frame)) + frame)[:cut], hang_up=True))

    assert error.code == ErrorCode.WIRE_TRUNCATED
    assert still_serves(server)


def test_garbage_in_a_frame_is_answered_and_the_connection_closed(server: Server) -> None:
    error = error_in(tell(server, preamble(100) + bytes(range(100))))

    assert error.code == ErrorCode.WIRE_GARBAGE
    assert still_serves(server)


def test_unknown_method_is_answered_and_the_connection_stays(server: Server) -> None:
    unknown, good = call_frame(method=99), call_frame()

    replies = tell(
        server, preamble(len(unknown)) + unknown + preamble(len(good)) + good, hang_up=True
    )

    first = 16 + parse_preamble(replies[:16]).size_bytes
    assert error_in(replies[:first]).code == ErrorCode.WIRE_UNKNOWN_METHOD
    assert not decode(replies[first + 16 :]).header.HasField("error")


def test_client_that_sends_too_much_still_reads_why_it_was_refused(server: Server) -> None:
    connection = connect_tcp(server.data_endpoints[0], WAIT_S)
    request = Message(pb.Header(protocol=1, method=Method.PUSH), [np.zeros(8 * LIMIT, np.uint8)])

    reply = connection.call(request, WAIT_S)
    connection.close()

    assert reply.header.error.code == ErrorCode.WIRE_TOO_LARGE
    assert still_serves(server)


# --- gRPC -----------------------------------------------------------------------------------------


@pytest.fixture
def channel(server: Server) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server.endpoint) as opened:
        yield opened


def refused(call: object, request: object) -> tuple[grpc.StatusCode, str, pb.Error]:
    with pytest.raises(grpc.RpcError) as caught:
        call(request, timeout=WAIT_S)  # type: ignore[operator]
    failure = caught.value
    wire = dict(failure.trailing_metadata())[ERROR_METADATA]
    return failure.code(), failure.details(), pb.Error.FromString(wire)


def test_ordinary_grpc_client_with_generated_messages_is_served(channel: grpc.Channel) -> None:
    call = channel.unary_unary(
        "/psrt.v1.Pserver/Call", pb.Frame.SerializeToString, pb.Frame.FromString
    )
    tensors = [pb.Tensor(dtype=2, shape=[2])]
    header = pb.Header(protocol=1, method=3, payload_bytes=16, tensors=tensors)

    reply = call(pb.Frame(header=header, payload=np.arange(2).tobytes()), timeout=WAIT_S)

    assert np.frombuffer(reply.payload, np.int64).tolist() == [0, 1]


def test_garbage_over_grpc_gets_a_status_with_words(channel: grpc.Channel) -> None:
    status, details, error = refused(channel.unary_unary("/psrt.v1.Pserver/Call"), b"garbage")

    assert status == grpc.StatusCode.INVALID_ARGUMENT
    assert "not a frame" in details
    assert error.code == ErrorCode.WIRE_GARBAGE


def test_large_call_of_nothing_garbage_or_too_much_gets_a_status(channel: grpc.Channel) -> None:
    large = channel.stream_stream("/psrt.v1.Pserver/CallLarge")
    header = pb.Header(protocol=1, method=3, payload_bytes=1 << 40)
    too_much = pb.Frame(header=header).SerializeToString()

    def first_reply(pieces: list[bytes], timeout: float) -> object:
        return next(large(iter(pieces), timeout=timeout))

    assert refused(first_reply, [])[0] == grpc.StatusCode.DATA_LOSS
    assert refused(first_reply, [b"garbage"])[0] == grpc.StatusCode.INVALID_ARGUMENT
    assert refused(first_reply, [too_much])[0] == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_rpc_that_does_not_exist_is_unimplemented(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary("/psrt.v1.Pserver/Steal")(b"", timeout=WAIT_S)

    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
