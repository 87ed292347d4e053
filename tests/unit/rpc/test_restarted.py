"""Calls name the process that they are meant for; its successor refuses them until greeted."""

from __future__ import annotations

import pytest

from psrt.core.errors import ErrorCode, JobError, UnavailableError
from psrt.pserver.serving.service import PserverService
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.serving import Peer
from psrt.rpc.status import to_wire
from psrt.rpc.wire.frames import Message
from tests.support.carriers import AT_ONCE

WAIT_S = 5.0


class Place:
    """A pserver that may be started again while its old connections seem to be good."""

    where = "ps:1"

    def __init__(self) -> None:
        self.process = 1
        self.calls: list[str] = []

    def __call__(self, endpoint: str) -> Place:
        return self

    def call(self, message: Message, timeout_s: float) -> Message:
        header = message.header
        name = f"{Method(header.method).name} to {header.process or 'any'}"
        self.calls.append(name)
        if header.method == Method.HELLO:
            return Message(
                pb.Header(hello_reply=pb.HelloReply(incarnation=5, process=self.process))
            )
        if header.process != self.process:
            return Message(pb.Header(error=to_wire(UnavailableError("", code=ErrorCode.RESTARTED))))
        return Message(pb.Header())

    def abort(self) -> None:
        pass

    def close(self) -> None:
        pass


def client_of(place: Place, durability: str) -> Client:
    client = Client("ps:1", 0, 7, place, pb.Hello(durability=durability), retry=AT_ONCE)
    client.connect(WAIT_S)
    client.call(Method.PULL, timeout_s=WAIT_S)
    return client


def test_a_call_to_a_process_that_was_not_greeted_sends_again_what_it_lacks_first() -> None:
    place = Place()
    client = client_of(place, "cut")
    client.recovers_by(lambda: place.calls.append("sent again"))
    place.calls.clear()
    place.process = 2

    client.call(Method.PULL, timeout_s=WAIT_S)

    assert place.calls == ["PULL to 1", "HELLO to any", "sent again", "PULL to 2"]
    client.close()


def test_in_a_job_that_is_not_durable_it_ends_by_name() -> None:
    place = Place()
    client = client_of(place, "")
    place.process = 2

    with pytest.raises(JobError, match="the parameters it held are lost"):
        client.call(Method.PULL, timeout_s=WAIT_S)
    client.close()


def test_a_pserver_refuses_calls_that_were_meant_for_another_process() -> None:
    service = PserverService(stripes=1, wait_timeout_s=WAIT_S)
    peer = Peer("test", "here")
    hello = service.handle(Message(pb.Header(method=Method.HELLO)), peer)
    assert isinstance(hello, Message)
    process = hello.header.hello_reply.process

    for meant_for in (0, process):
        service.handle(Message(pb.Header(method=Method.STATUS, process=meant_for)), peer)
    with pytest.raises(UnavailableError) as refused:
        service.handle(Message(pb.Header(method=Method.STATUS, process=process + 1)), peer)

    assert refused.value.code is ErrorCode.RESTARTED
    service.stop()
