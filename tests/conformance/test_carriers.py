"""Every carrier keeps the same promises; nobody sees how the bytes travelled."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from psrt.core.errors import (
    DeadlineError,
    ErrorCode,
    InternalError,
    JobError,
    TableError,
    UnavailableError,
    WireError,
)
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.serving import Handler, Later, Peer
from psrt.rpc.wire.frames import Message
from tests.support.carriers import CARRIERS, ENCRYPTED, INCARNATION, Station, eventually, station

Serve = Callable[[Handler], Station]
WAIT_S = 20.0
MIB = 1 << 20


@pytest.fixture(params=[*CARRIERS, *ENCRYPTED])
def serve(request: pytest.FixtureRequest) -> Iterator[Serve]:
    """Put a handler behind the carrier under test."""
    opened = []

    def put(handler: Handler) -> Station:
        context = station(request.param, handler)
        opened.append(context)
        return context.__enter__()

    yield put
    for context in opened:
        context.__exit__(None, None, None)


def echo(request: Message, peer: Peer) -> Message:
    return Message(pb.Header(parts=request.header.parts), list(request.tensors))


class Gate:
    """A handler whose EXCHANGE calls wait until `open`; everything else is echoed."""

    def __init__(self) -> None:
        self.waiting: list[Future[None]] = []

    def __call__(self, request: Message, peer: Peer) -> Message | Later:
        if request.header.method != Method.EXCHANGE:
            return echo(request, peer)
        self.waiting.append(Future())
        return Later(self.waiting[-1], lambda: echo(request, peer))

    def open(self) -> None:
        for future in self.waiting:
            future.set_result(None)


TENSORS: list[Any] = [
    np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    np.array([0, -1, np.iinfo(np.int64).min], np.int64),
    np.zeros((0, 16), np.float32),
    np.array(2.5, np.float64),
    np.arange(20, dtype=np.int32)[::2],
    np.arange(12, dtype=np.float32).reshape(3, 4).T,
    np.arange(65, dtype=np.uint8),
]


def test_tensors_of_every_dtype_and_shape_arrive_as_they_were_sent(serve: Serve) -> None:
    client = serve(echo).client()

    reply = client.call(Method.PULL, tensors=TENSORS, timeout_s=WAIT_S)

    assert [t.dtype for t in reply.tensors] == [t.dtype for t in TENSORS]
    assert [t.shape for t in reply.tensors] == [t.shape for t in TENSORS]
    assert all(np.array_equal(a, b) for a, b in zip(reply.tensors, TENSORS, strict=True))


def test_header_fields_arrive_and_the_reply_is_addressed_to_its_request(serve: Serve) -> None:
    seen = []

    def remember(request: Message, peer: Peer) -> Message:
        seen.append(pb.Header.FromString(request.header.SerializeToString()))
        return Message(pb.Header(round=8))

    header = pb.Header(round=7, step=3, parts=[pb.Part(kind=3, table="fc_0.w_0", version=5)])
    reply = serve(remember).client(trainer=4).call(Method.PULL, header=header, timeout_s=WAIT_S)

    assert (seen[0].trainer, seen[0].round, seen[0].step) == (4, 7, 3)
    assert seen[0].parts[0].table == "fc_0.w_0"
    assert 0 < seen[0].timeout_ms <= WAIT_S * 1000
    assert reply.header.reply
    assert (reply.header.round, reply.header.request_id) == (8, seen[0].request_id)


def test_messages_of_many_mebibytes_travel_whole(serve: Serve) -> None:
    client = serve(echo).client()
    rows = np.random.default_rng(1).random((9 * MIB // 64 + 3, 16), np.float32)
    ids = np.arange(len(rows))

    reply = client.call(Method.PUSH, tensors=[ids, rows], timeout_s=WAIT_S)

    assert np.array_equal(reply.tensors[0], ids)
    assert np.array_equal(reply.tensors[1], rows)


def test_small_request_may_have_a_large_reply(serve: Serve) -> None:
    values = np.arange(2 * MIB, dtype=np.float32)
    client = serve(lambda request, peer: Message(pb.Header(), [values])).client()

    replies = [client.call(Method.PULL, timeout_s=WAIT_S) for _ in range(2)]

    assert all(np.array_equal(reply.tensors[0], values) for reply in replies)


def test_a_reply_is_the_same_whether_or_not_it_has_arrays_to_go_to(serve: Serve) -> None:
    values, few = np.arange(2 * MIB, dtype=np.float32), np.arange(5)
    client = serve(lambda request, peer: Message(pb.Header(), [few, values, values])).client()
    out = np.zeros_like(values)

    reply = client.call(Method.PULL, into=[None, out], timeout_s=WAIT_S)

    assert [t.tolist() for t in reply.tensors[:1]] == [few.tolist()]
    assert all(np.array_equal(tensor, values) for tensor in reply.tensors[1:])
    assert reply.tensors[2] is not out
    assert np.array_equal(out, values if reply.tensors[1] is out else np.zeros_like(values))


def test_message_of_more_tensors_than_the_kernel_gathers_at_once(serve: Serve) -> None:
    client = serve(echo).client()
    tensors = [np.full(5, i, np.int64) for i in range(3000)]

    reply = client.call(Method.PULL, tensors=tensors, timeout_s=WAIT_S)

    assert np.array_equal(np.stack(reply.tensors), np.stack(tensors))


def test_request_tensors_are_read_only_for_the_handler(serve: Serve) -> None:
    def writable(request: Message, peer: Peer) -> Message:
        return Message(pb.Header(round=int(request.tensors[0].flags.writeable)))

    reply = serve(writable).client().call(Method.PULL, tensors=[np.ones(4)], timeout_s=WAIT_S)

    assert reply.header.round == 0


def test_tensors_that_are_kept_survive_later_calls(serve: Serve) -> None:
    client = serve(echo).client()

    kept = [
        client.call(Method.PULL, tensors=[np.full(1000, i)], timeout_s=WAIT_S).tensors[0]
        for i in range(8)
    ]

    assert [int(tensor[0]) for tensor in kept] == list(range(8))


def test_error_of_the_handler_is_raised_with_endpoint_call_and_remote_cause(serve: Serve) -> None:
    def refuse(request: Message, peer: Peer) -> Message:
        raise TableError("Table emb is not registered.", hint="Register it first.")

    client = serve(refuse).client()
    with pytest.raises(TableError) as caught:
        client.call(Method.PULL, timeout_s=WAIT_S)

    assert caught.value.code == ErrorCode.TABLE_UNKNOWN
    assert client.endpoint in caught.value.message
    assert "PULL" in caught.value.message
    assert "Table emb is not registered." in caught.value.message
    assert caught.value.hint == "Register it first."


def test_any_other_exception_of_the_handler_becomes_an_internal_error(serve: Serve) -> None:
    def broken(request: Message, peer: Peer) -> Message:
        raise ZeroDivisionError("rows / 0")

    with pytest.raises(InternalError, match="ZeroDivisionError: rows / 0"):
        serve(broken).client().call(Method.PULL, timeout_s=WAIT_S)


def test_unknown_method_and_other_protocol_version_get_a_clear_reply(serve: Serve) -> None:
    connection = serve(echo).connection()

    method = connection.call(Message(pb.Header(protocol=1, method=99)), WAIT_S)
    version = connection.call(Message(pb.Header(protocol=2, method=Method.PULL)), WAIT_S)
    good = connection.call(Message(pb.Header(protocol=1, method=Method.PULL)), WAIT_S)
    connection.close()

    assert method.header.error.code == ErrorCode.WIRE_UNKNOWN_METHOD
    assert version.header.error.code == ErrorCode.WIRE_VERSION
    assert not good.header.HasField("error")


def test_reply_that_waits_for_others_is_finished_when_they_are_there(serve: Serve) -> None:
    gate = Gate()
    client = serve(gate).client()

    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(client.call, Method.EXCHANGE, tensors=[np.arange(3)], timeout_s=WAIT_S)
        eventually(lambda: len(gate.waiting) == 1, "the call to reach the handler")
        gate.open()
        reply = call.result(WAIT_S)

    assert reply.tensors[0].tolist() == [0, 1, 2]


def test_many_waiting_calls_do_not_keep_another_from_being_served(serve: Serve) -> None:
    gate = Gate()
    client = serve(gate).client()

    with ThreadPoolExecutor(24) as pool:
        calls = [pool.submit(client.call, Method.EXCHANGE, timeout_s=WAIT_S) for _ in range(24)]
        eventually(lambda: len(gate.waiting) == 24, "all calls to wait at the gate")
        pulled = client.call(Method.PULL, tensors=[np.ones(2)], timeout_s=WAIT_S)
        gate.open()
        replies = [call.result(WAIT_S) for call in calls]

    assert pulled.tensors[0].tolist() == [1.0, 1.0]
    assert len({reply.header.request_id for reply in replies}) == 24


def test_failed_wait_raises_what_the_pserver_said(serve: Serve) -> None:
    failed: Future[None] = Future()
    failed.set_exception(JobError("Trainer 1 left.", code=ErrorCode.TRAINER_LOST))
    client = serve(lambda request, peer: Later(failed, lambda: Message(pb.Header()))).client()

    with pytest.raises(JobError, match=r"EXCHANGE of round 0 .* Trainer 1 left\."):
        client.call(Method.EXCHANGE, timeout_s=WAIT_S)


def test_a_call_may_wait_for_something_else_once_its_first_wait_is_over(serve: Serve) -> None:
    first, second, asked = Future[None](), Future[None](), threading.Event()

    def handle(request: Message, peer: Peer) -> Message | Later:
        def finish() -> Later:
            asked.set()
            return Later(second, lambda: Message(pb.Header(), [np.ones(3, np.float32)]))

        return Later(first, finish)

    client = serve(handle).client()
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(client.call, Method.EXCHANGE, timeout_s=WAIT_S)
        first.set_result(None)
        assert asked.wait(WAIT_S)
        assert not call.done()
        second.set_result(None)
        reply = call.result(WAIT_S)

    assert reply.tensors[0].tolist() == [1.0, 1.0, 1.0]


def test_missing_reply_ends_in_a_deadline_error_that_names_the_call(serve: Serve) -> None:
    gate = Gate()
    client = serve(gate).client()
    client.connect(WAIT_S)
    parts = [pb.Part(kind=1, table=f"fc_{i}.w_0") for i in range(5)]

    with pytest.raises(DeadlineError) as caught:
        client.call(Method.EXCHANGE, header=pb.Header(round=12, parts=parts), timeout_s=0.05)

    gate.open()
    assert client.endpoint in caught.value.message
    assert "EXCHANGE of round 12 (fc_0.w_0, fc_1.w_0, fc_2.w_0 and 2 more)" in caught.value.message
    assert re.search(r"got no reply in \d+\.\d s", caught.value.message)


def test_client_goes_on_after_a_deadline_and_never_sees_the_late_reply(serve: Serve) -> None:
    gate = Gate()
    client = serve(gate).client()
    client.connect(WAIT_S)
    with pytest.raises(DeadlineError):
        client.call(Method.EXCHANGE, tensors=[np.zeros(1)], timeout_s=0.05)

    gate.open()
    reply = client.call(Method.PULL, tensors=[np.ones(1)], timeout_s=WAIT_S)

    assert reply.tensors[0].tolist() == [1.0]


class Counting:
    """A tiny pserver: adds each push key once, counts how often pushes came."""

    def __init__(self) -> None:
        self.arrived = 0
        self.applied: set[tuple[int, int, int]] = set()
        self.lock = threading.Lock()

    def __call__(self, request: Message, peer: Peer) -> Message:
        key = request.header.push_key
        with self.lock:
            self.arrived += 1
            self.applied.add((request.header.trainer, key.incarnation, key.sequence))
        return Message(pb.Header())


@pytest.mark.parametrize("method", [Method.PUSH, Method.EXCHANGE])
def test_push_whose_reply_is_lost_is_retried_with_the_same_key(
    serve: Serve, method: Method
) -> None:
    pserver = Counting()
    place = serve(pserver)
    client = place.client(trainer=3)
    client.connect(WAIT_S)
    place.lose_next_reply(method)

    client.call(method, header=pb.Header(push_key=client.next_push_key()), timeout_s=WAIT_S)
    client.call(method, header=pb.Header(push_key=client.next_push_key()), timeout_s=WAIT_S)

    assert pserver.arrived == 3
    assert pserver.applied == {(3, INCARNATION, 1), (3, INCARNATION, 2)}


def test_concurrent_calls_each_get_their_own_reply(serve: Serve) -> None:
    client = serve(echo).client()

    def ask(i: int) -> float:
        reply = client.call(Method.PULL, tensors=[np.full(5000, i, np.float32)], timeout_s=WAIT_S)
        return float(reply.tensors[0].mean())

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(100)))

    assert answers == [float(i) for i in range(100)]


def test_stopped_pserver_is_unavailable_and_named(serve: Serve) -> None:
    place = serve(echo)
    client = place.client()
    client.call(Method.PULL, timeout_s=WAIT_S)

    place.stop()

    with pytest.raises(UnavailableError, match=client.endpoint):
        client.call(Method.PULL, timeout_s=0.2)


def test_stop_lets_a_running_call_finish_and_its_reply_go_out(serve: Serve) -> None:
    gate = Gate()
    place = serve(gate)
    client = place.client()

    with ThreadPoolExecutor(2) as pool:
        call = pool.submit(client.call, Method.EXCHANGE, tensors=[np.ones(1)], timeout_s=WAIT_S)
        eventually(lambda: len(gate.waiting) == 1, "the call to reach the handler")
        stopping = pool.submit(place.stop, WAIT_S)
        gate.open()
        reply = call.result(WAIT_S)
        stopping.result(WAIT_S)

    assert reply.tensors[0].tolist() == [1.0]


def test_tensor_of_a_dtype_the_wire_has_not_is_refused_before_it_is_sent(serve: Serve) -> None:
    client = serve(echo).client()

    with pytest.raises(WireError, match="complex64"):
        client.call(Method.PULL, tensors=[np.zeros(3, np.complex64)], timeout_s=WAIT_S)
