"""Durations and refusals of calls: replies at once, later ones, and errors."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from psrt.core.errors import DeadlineError, JobError
from psrt.pserver.process.metered_calls import CallMeter
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.serving import Later, Peer
from psrt.rpc.wire import Message

PEER = Peer("test", "here")


def call(meter: CallMeter, handler, method: int = Method.PULL):
    return meter.wrap(handler)(Message(pb.Header(method=method)), PEER)


def counts(meter: CallMeter) -> dict[str, int]:
    return {name: sum(found.counts) for name, found in meter.durations.totals().items()}


def test_a_reply_is_measured_by_the_name_of_its_method() -> None:
    meter, reply = CallMeter(), Message(pb.Header())

    assert call(meter, lambda message, peer: reply) is reply

    assert counts(meter) == {"PULL": 1}
    assert meter.refused() == {}


def test_methods_without_a_name_share_one_label() -> None:
    meter = CallMeter()

    for method in range(500, 600):
        call(meter, lambda message, peer: message, method)

    assert counts(meter) == {"UNKNOWN": 100}


def test_a_later_reply_is_measured_once_it_is_finished() -> None:
    meter, future, reply = CallMeter(), Future(), Message(pb.Header())
    later = call(meter, lambda message, peer: Later(future, lambda: reply))
    before = counts(meter)
    future.set_result(None)

    assert later.finish() is reply
    assert before == {}
    assert counts(meter) == {"PULL": 1}


def test_errors_are_counted_by_code_at_once_and_later() -> None:
    meter, future = CallMeter(), Future()

    def refuse(message: Message, peer: Peer) -> Message:
        raise JobError("no")

    with pytest.raises(JobError):
        call(meter, refuse)
    call(meter, lambda message, peer: Later(future, lambda: message))
    future.set_exception(DeadlineError("late"))

    assert meter.refused() == {JobError("").code.name: 1, DeadlineError("").code.name: 1}
    assert counts(meter) == {"PULL": 2}
