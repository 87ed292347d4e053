"""A pserver of one run refuses trainers of another one of the same job."""

from __future__ import annotations

import pytest

from psrt.core.errors import ErrorCode, WireError
from psrt.pserver.process.one_run import only_of_run
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.serving import Peer
from psrt.rpc.wire import Message

PEER = Peer("stream-tcp", "127.0.0.1:1")


def hello(run: str, plan: str = "plan") -> Message:
    said = pb.Hello(job_id="job", plan_hash=plan, trainers=2, run=run)
    return Message(pb.Header(method=Method.HELLO, trainer=1, hello=said))


def handled(run: str, message: Message) -> bool:
    calls: list[Message] = []

    def handler(message: Message, peer: Peer) -> Message:
        calls.append(message)
        return Message(pb.Header())

    only_of_run(run, handler)(message, PEER)
    return bool(calls)


@pytest.mark.parametrize("theirs", ["b", ""])
def test_a_trainer_of_another_run_is_refused(theirs: str) -> None:
    with pytest.raises(WireError, match="this pserver to run a; its HELLO was refused") as raised:
        handled("a", hello(theirs))

    assert raised.value.code is ErrorCode.JOB_MISMATCH


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ("a", hello("a")),
        ("", hello("b")),
        ("a", hello("", plan="")),
        ("a", Message(pb.Header(method=Method.STATUS))),
    ],
    ids=["own run", "pserver without one", "caller that does not join", "other call"],
)
def test_other_calls_are_handled(run: str, message: Message) -> None:
    assert handled(run, message)
