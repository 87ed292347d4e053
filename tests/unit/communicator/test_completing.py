"""The end of a trainer in a durable job: when it may leave, and for how long it stays."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from psrt.communicator.requests import endpoint_threads, recovery
from psrt.communicator.requests.pserver_group import PserverGroup
from psrt.communicator.requests.retained import RetainedPushes
from psrt.core.errors import DeadlineError
from psrt.partition.plan import PartitionPlan
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.serving import Peer
from psrt.rpc.wire import Message
from tests.support.inproc import InprocServer
from tests.support.pserver import AT_ONCE, CALL_TIMEOUT_S

Answer = Callable[[int], pb.Complete]
"""Reply to COMPLETE number 1, 2, … of a trainer; the confirmation is none."""


class ScriptedPserver:
    """A pserver that answers COMPLETE by a script, and counts those that it gets."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.completes, self.confirmed_at = 0, 0
        self.is_called = threading.Condition()

    def handle(self, message: Message, peer: Peer) -> Message:
        header = message.header
        if header.method == Method.HELLO:
            return Message(pb.Header(hello_reply=pb.HelloReply(incarnation=1, process=1)))
        if header.method != Method.COMPLETE:
            return Message(pb.Header())
        with self.is_called:
            if header.complete.confirms:
                self.confirmed_at = self.completes
                return Message(pb.Header())
            self.completes += 1
            self.is_called.notify_all()
            number = self.completes
        return Message(pb.Header(complete=self._answer(number)))

    def await_completes(self, count: int) -> bool:
        with self.is_called:
            return self.is_called.wait_for(lambda: self.completes >= count, CALL_TIMEOUT_S)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "PING_S", 0.001)


@contextmanager
def group_of(durability: str, pservers: Sequence[ScriptedPserver]) -> Iterator[PserverGroup]:
    endpoints = tuple(f"ps{number}:6170" for number in range(len(pservers)))
    hello = pb.Hello(durability=durability)
    clients = [
        Client(endpoint, 0, 7, InprocServer(pserver.handle), hello, retry=AT_ONCE)
        for endpoint, pserver in zip(endpoints, pservers, strict=True)
    ]
    for client in clients:
        client.connect(CALL_TIMEOUT_S)
    retained = RetainedPushes(clients, 1 << 20, waits_for_deltas=durability != "cut")
    group = PserverGroup(
        *(PartitionPlan(endpoints, (), ()), clients),
        call_timeout_s=CALL_TIMEOUT_S,
        retained=retained,
    )
    try:
        yield group
    finally:
        group.close()
        for client in clients:
            client.close()


def always(**facts: bool) -> Answer:
    return lambda number: pb.Complete(**facts)


def recorded_from(first: int) -> Answer:
    """All trainers have completed; the end of this one is durable from COMPLETE `first` on."""
    return lambda number: pb.Complete(ended=True, recorded=number >= first)


def test_with_local_cuts_a_trainer_stays_until_its_end_is_durable_at_every_pserver() -> None:
    pservers = [ScriptedPserver(recorded_from(5)), ScriptedPserver(recorded_from(2))]
    with group_of("delta", pservers) as group:
        group.complete(CALL_TIMEOUT_S)

    assert pservers[0].confirmed_at >= 5
    assert pservers[1].confirmed_at >= 2


def test_with_cuts_alone_a_trainer_leaves_once_all_have_completed() -> None:
    pservers = [ScriptedPserver(always()), ScriptedPserver(always(ended=True))]
    with group_of("cut", pservers) as group:
        group.complete(CALL_TIMEOUT_S)

    assert all(each.confirmed_at for each in pservers)


@pytest.mark.parametrize("durability", ["cut", "delta"])
def test_a_pserver_is_kept_while_another_one_recovers(durability: str) -> None:
    def late(number: int) -> pb.Complete:
        assert other.await_completes(3), "a pserver without a COMPLETE for long ends"
        return pb.Complete(recorded=True)

    recovering, other = ScriptedPserver(late), ScriptedPserver(always(recorded=True))
    with group_of(durability, [recovering, other]) as group:
        group.complete(CALL_TIMEOUT_S)

    assert recovering.confirmed_at == 1


def test_a_pserver_that_never_recovers_keeps_a_trainer_for_its_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(endpoint_threads, "BACKSTOP_S", 0.05)
    is_over = threading.Event()

    def stuck_after_the_first(number: int) -> pb.Complete:
        assert number == 1 or is_over.wait(CALL_TIMEOUT_S), "the trainer waits for ever"
        return pb.Complete()

    with group_of("cut", [ScriptedPserver(stuck_after_the_first)]) as group:
        with pytest.raises(DeadlineError, match="ps0:6170"):
            group.complete(0.05)
        is_over.set()
