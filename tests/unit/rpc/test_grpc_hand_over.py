"""Calls over gRPC that change threads: those that others would have to wait for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future

import numpy as np
import pytest

from psrt.core.types import Array
from psrt.rpc import pb
from psrt.rpc.grpc_ import grpc_calls
from psrt.rpc.grpc_.grpc_carrier import GrpcConnection
from psrt.rpc.grpc_.grpc_server import GrpcServer
from psrt.rpc.methods import Method
from psrt.rpc.serving import Later, Peer
from psrt.rpc.wire.frames import Message
from tests.support.carriers import eventually

LONG_S = 30.0
LOOP = "psrt-grpc"


class Threads:
    """A handler that notes the threads it is called by; a MEET waits until `gate` is resolved."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.gate: Future[None] = Future()
        self._server = GrpcServer(self._handle)
        self._connection = GrpcConnection(f"127.0.0.1:{self._server.start('127.0.0.1:0')}")

    def call(self, method: Method, *tensors: Array) -> Message:
        message = Message(pb.Header(protocol=1, method=method), list(tensors))
        return self._connection.call(message, LONG_S)

    def close(self) -> None:
        self._connection.close()
        self._server.stop(1.0)

    def _handle(self, request: Message, peer: Peer) -> Message | Later:
        self.seen.append(threading.current_thread().name)
        if request.header.method == Method.MEET:
            return Later(self.gate, lambda: Message(pb.Header()))
        return Message(pb.Header(), list(request.tensors))


@pytest.fixture
def threads() -> Iterator[Threads]:
    made = Threads()
    yield made
    made.close()


@pytest.mark.parametrize("method", [Method.PULL, Method.PUSH])
def test_a_short_call_that_is_alone_stays_on_the_loop(threads: Threads, method: Method) -> None:
    rows = np.arange(1000, dtype=np.float32)

    reply = threads.call(method, rows)

    assert threads.seen == [LOOP]
    assert np.array_equal(reply.tensors[0], rows)


@pytest.mark.parametrize("method", [Method.EXPORT, Method.SHRINK, Method.REGISTER, Method.RECORDS])
def test_what_may_take_long_is_handed_over(threads: Threads, method: Method) -> None:
    threads.call(method)

    assert threads.seen[0].startswith("psrt-grpc-call")


def test_a_large_call_is_handed_over(threads: Threads) -> None:
    threads.call(Method.PUSH, np.zeros(grpc_calls._SHORT_BYTES // 4 + 1, np.float32))

    assert threads.seen[0].startswith("psrt-grpc-call")


def test_a_call_beside_another_one_is_handed_over(threads: Threads) -> None:
    meeting = threading.Thread(target=threads.call, args=(Method.MEET,))
    meeting.start()
    eventually(lambda: len(threads.seen) == 1, "the first call to be under way")

    threads.call(Method.PULL)
    threads.gate.set_result(None)
    meeting.join(LONG_S)
    threads.call(Method.PULL)

    assert threads.seen[1].startswith("psrt-grpc-call")
    assert threads.seen[2] == LOOP
