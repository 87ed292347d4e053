"""A pserver takes so many gRPC calls at once and refuses the next one by name."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from psrt.core.errors import ErrorCode
from psrt.rpc import pb
from psrt.rpc.grpc_ import grpc_server
from psrt.rpc.grpc_.grpc_calls import GrpcCalls
from psrt.rpc.grpc_.grpc_carrier import GrpcConnection
from psrt.rpc.grpc_.grpc_server import GrpcServer
from psrt.rpc.methods import Method
from psrt.rpc.serving import Later, Peer
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

    def limited(*args: object, **options: object) -> GrpcCalls:
        return GrpcCalls(*args, most_calls=2, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(grpc_server, "GrpcCalls", limited)
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
