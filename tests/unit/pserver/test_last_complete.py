"""The end of a job whose last reply to COMPLETE is lost: trainers and pserver both end well."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from psrt.core.errors import PsrtError, UnavailableError
from psrt.core.specs import Async, Sync, to_json
from psrt.pserver.decisions.job_identity import JobIdentity
from psrt.pserver.decisions.membership import LINGER_S
from psrt.pserver.decisions.pserver_state import PserverState
from psrt.pserver.serving.service import PserverService
from psrt.rpc import client as rpc_client
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from tests.support.carriers import CARRIERS, Station, eventually, station
from tests.support.clock import ManualClock
from tests.support.inproc import Fault
from tests.support.pserver import AT_ONCE, CALL_TIMEOUT_S

HELLO = pb.Hello(job_id="job", plan_hash="plan", trainers=1, mode=to_json(Async()))


@dataclass
class Daemon:
    """A service whose process leaves as soon as its job has ended; a clock moved by hand."""

    clock: ManualClock
    service: PserverService
    ends: list[PsrtError | None] = field(default_factory=list)
    leaving: threading.Event = field(default_factory=threading.Event)

    def ended(self, error: PsrtError | None) -> None:
        self.ends.append(error)
        self.leaving.set()


@contextmanager
def daemon_on(carrier: str) -> Iterator[tuple[Daemon, Station]]:
    clock = ManualClock()
    service = PserverService(
        stripes=1, wait_timeout_s=10.0, clock=clock, on_end=lambda error: daemon.ended(error)
    )
    daemon = Daemon(clock, service)
    with station(carrier, service.handle, greets=True) as at:

        def leave() -> None:
            daemon.leaving.wait()
            at.stop()

        leaver = threading.Thread(target=leave)
        leaver.start()
        try:
            yield daemon, at
        finally:
            daemon.leaving.set()
            leaver.join()
            service.stop()


def client_of(at: Station) -> Client:
    client = at.client(retry=AT_ONCE, hello=HELLO)
    client.connect(CALL_TIMEOUT_S)
    return client


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_trainer_whose_last_reply_is_lost_asks_again_and_is_answered(carrier: str) -> None:
    with daemon_on(carrier) as (daemon, at):
        client = client_of(at)
        at.lose_next_reply(Method.COMPLETE)

        client.complete(CALL_TIMEOUT_S)
        client.confirm()

        eventually(daemon.leaving.is_set, "the end of the pserver")
    assert daemon.ends == [None]


def test_a_reply_that_never_comes_is_asked_for_again_before_the_timeout() -> None:
    with daemon_on("inproc") as (daemon, at):
        client = client_of(at)
        at._inproc.faults.script(Fault.DROP_REPLY, Method.COMPLETE)

        client.complete(CALL_TIMEOUT_S)
        client.confirm()

    assert daemon.ends == [None]


def test_a_pserver_ends_without_a_confirmation_once_nobody_asks_any_more() -> None:
    with daemon_on("inproc") as (daemon, at):
        client = client_of(at)
        header = pb.Header(complete=pb.Complete(will_confirm=True))
        client.call(Method.COMPLETE, header=header, timeout_s=CALL_TIMEOUT_S)
        daemon.clock.advance(LINGER_S - 0.1)
        daemon.service.expire()
        before = list(daemon.ends)

        daemon.clock.advance(0.1)
        daemon.service.expire()

    assert before == []
    assert daemon.ends == [None]


def test_a_trainer_that_says_nothing_of_a_confirmation_ends_the_job_at_once() -> None:
    with daemon_on("inproc") as (daemon, at):
        client_of(at).call(Method.COMPLETE, timeout_s=CALL_TIMEOUT_S)

        assert daemon.ends == [None]


def test_a_complete_that_reaches_no_pserver_fails_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc_client, "_COMPLETE_S", 0.01)
    with daemon_on("inproc") as (daemon, at):
        client = client_of(at)
        at._inproc.faults.script(Fault.DROP_REQUEST, Method.COMPLETE, times=1000)
        with pytest.raises(UnavailableError, match="COMPLETE to pserver inproc failed after"):
            client.complete(timeout_s=1.0)

    assert daemon.ends == []


# --- decisions ----------------------------------------------------------------------------------

STEPS = ("complete", "complete", "confirm")


@pytest.mark.parametrize("mode", [Async(), Sync()])
def test_in_every_order_the_job_ends_with_the_last_confirmation(mode: Async | Sync) -> None:
    """Trainer 0 sends COMPLETE twice and confirms; trainer 1, of an earlier release, completes."""
    for position, repeats_last in itertools.product(range(4), (False, True)):
        state = PserverState(10.0)
        job = JobIdentity("job", "plan", 2, mode)
        for trainer in (0, 1):
            state.hello(trainer, 100 + trainer, job, 0.0)
        script: list[tuple[str, int]] = [(step, 0) for step in STEPS]
        script.insert(position, ("leave", 1))
        script += [("complete", 0)] * repeats_last  # a late copy of the first COMPLETE

        ended = [has_ended_after(state, *step) for step in script]

        last = max(script.index(("confirm", 0)), script.index(("leave", 1)))
        assert ended == [number >= last for number in range(len(script))]


def has_ended_after(state: PserverState, step: str, trainer: int) -> bool:
    own = trainer == 0
    confirms = step == "confirm"
    state.complete(
        trainer, 100 + trainer, 1.0, will_confirm=own and not confirms, confirms=confirms
    )
    return state.has_ended


def test_a_pserver_that_lingers_has_one_deadline_and_none_after_it() -> None:
    state = PserverState(10.0)
    state.hello(0, 100, JobIdentity("job", "plan", 1, Async()), 0.0)
    state.complete(0, 100, 1.0, will_confirm=True)
    state.expire(2.5)

    deadline_s = state.next_deadline()
    state.expire(1.0 + LINGER_S)

    assert deadline_s == 1.0 + LINGER_S
    assert state.next_deadline() is None
    assert state.has_ended
