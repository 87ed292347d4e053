"""A pserver takes so many gRPC calls at once and refuses the next one by name."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest

from psrt.core.errors import ErrorCode
from psrt.rpc import pb, unfinished
from psrt.rpc.grpc_ import grpc_calls, grpc_server
from psrt.rpc.grpc_.call_limits import CallLimits
from psrt.rpc.grpc_.grpc_carrier import SERVICE, GrpcConnection
from psrt.rpc.grpc_.grpc_server import GrpcServer
from psrt.rpc.grpc_library import grpc
from psrt.rpc.methods import Method
from psrt.rpc.serving import Later, Peer
from psrt.rpc.unfinished import UnfinishedFrames
from psrt.rpc.wire import GREETING_BYTES, split
from psrt.rpc.wire.frames import Message
from tests.support.carriers import eventually

LONG_S = 30.0


def test_one_call_too_many_is_refused_and_room_is_made_as_calls_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate: Future[None] = Future()
    waiting: list[Message] = []

    def handler(message: Message, peer: Peer) -> Later:
        waiting.append(message)
        return Later(gate, lambda: Message(pb.Header()))

    def limited(max_bytes: int, frames: UnfinishedFrames, host_share: float) -> CallLimits:
        return CallLimits(max_bytes, frames, 1.0, most_calls=2)

    monkeypatch.setattr(grpc_server, "CallLimits", limited)
    server = GrpcServer(handler)
    connection = GrpcConnection(f"127.0.0.1:{server.start('127.0.0.1:0')}")
    call = Message(pb.Header(protocol=1, method=Method.STATUS))
    pool = ThreadPoolExecutor(2)
    try:
        first = [pool.submit(connection.call, call, LONG_S) for _ in range(2)]
        eventually(lambda: len(waiting) == 2, "two calls under way")

        refused = connection.call(call, LONG_S)
        gate.set_result(None)
        answered = [each.result(LONG_S) for each in first]
        again = connection.call(call, LONG_S)
    finally:
        pool.shutdown()
        connection.close()
        server.stop(1.0)

    assert refused.header.error.code == ErrorCode.UNAVAILABLE
    assert "has 2 gRPC calls under way" in refused.header.error.message
    assert not any(reply.header.HasField("error") for reply in (*answered, again))


def test_a_host_may_have_a_share_of_the_calls() -> None:
    limits = CallLimits(1 << 20, UnfinishedFrames(1 << 30), host_share=0.5, most_calls=4)

    assert limits.take(1, "a") is None
    assert limits.take(2, "a") is None
    full = limits.take(3, "a")
    assert full is not None
    assert "Host a has 2 gRPC calls under way" in full.message
    assert limits.take(3, "b") is None


def test_a_stranger_may_send_a_few_kilobytes_and_no_large_message(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[Message] = []

    def handler(message: Message, peer: Peer) -> Message:
        seen.append(message)
        return Message(pb.Header())

    server = GrpcServer(handler, grant_of=lambda session: None)
    connection = GrpcConnection(f"127.0.0.1:{server.start('127.0.0.1:0')}")
    try:
        for size in (GREETING_BYTES, 8 << 20):
            header = pb.Header(protocol=1, method=Method.PUSH)
            reply = connection.call(Message(header, [np.zeros(size, np.uint8)]), LONG_S)
            assert reply.header.error.code == ErrorCode.ACCESS_DENIED
    finally:
        connection.close()
        server.stop(1.0)

    assert seen == []
    assert "refused grpc" in caplog.text


def test_a_large_message_that_does_not_arrive_in_time_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grpc_calls, "GRACE_S", 0.05)
    over = threading.Event()

    def halves() -> Iterator[bytes]:
        yield next(split(Message(pb.Header(protocol=1), [np.zeros(8 << 20, np.uint8)])))
        over.wait(LONG_S)

    monkeypatch.setattr(unfinished, "GRACE_S", 0.05)
    monkeypatch.setattr(unfinished, "LEAST_BYTES_PER_S", 1 << 40)
    server = GrpcServer(lambda message, peer: Message(pb.Header()))
    with grpc.insecure_channel(f"127.0.0.1:{server.start('127.0.0.1:0')}") as channel:
        call = channel.stream_stream(f"/{SERVICE}/CallLarge")(halves(), timeout=LONG_S)
        with pytest.raises(grpc.RpcError) as late:
            next(call)
    over.set()
    server.stop(1.0)

    assert "did not arrive in time" in late.value.details()
