"""MEET over the service: waits for slower trainers, and their ends."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from psrt.core import specs
from psrt.core.errors import DeadlineError, ErrorCode, JobError, UnavailableError
from psrt.pserver.decisions.clocks import NO_OTHER
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from tests.support.carriers import eventually
from tests.support.clock import ManualClock
from tests.support.inproc import Fault
from tests.support.pserver import CALL_TIMEOUT_S, InprocPserver, inproc_pserver

WAIT_S = 20.0  # of the pservers here; a manual clock passes it


def meet(client: Client, reached: int, awaited: int, timeout_s: float = CALL_TIMEOUT_S) -> int:
    """The time of the slowest other trainer."""
    header = pb.Header(meet=pb.Meet(clock="step", reached=reached, awaited=awaited))
    reply = client.call(Method.MEET, header=header, timeout_s=timeout_s)
    return int(reply.header.meet_reply.slowest)


def complete(client: Client) -> None:
    client.call(Method.COMPLETE, timeout_s=CALL_TIMEOUT_S)


def wait_for(pserver: InprocPserver, *trainers: int) -> None:
    """Return when exactly these trainers wait on the clock."""

    def waiting() -> list[int]:
        return [t for clock in pserver.service.status()["clocks"] for t in clock["waiting"]]

    eventually(lambda: waiting() == list(trainers), f"trainers {trainers} on the clock")


@pytest.mark.parametrize("mode", [specs.Sync(), specs.Async(), specs.Ssp(), specs.Geo()])
def test_a_meeting_is_over_when_the_slowest_is_there_and_tells_its_time(
    mode: specs.CommunicationMode,
) -> None:
    with inproc_pserver(trainers=3, mode=mode) as pserver, ThreadPoolExecutor(1) as pool:
        one, two, three = (pserver.join(trainer) for trainer in range(3))
        waits = pool.submit(meet, one, 5, 2)
        wait_for(pserver, 0)

        meet(two, 3, 0)
        meet(three, 1, 0)
        wait_for(pserver, 0)
        meet(three, 2, 0)

        assert waits.result(60.0) == 2
        assert meet(two, 3, 0) == 2


def test_a_completed_trainer_is_waited_for_no_more() -> None:
    with inproc_pserver(trainers=2, mode=specs.Ssp()) as pserver, ThreadPoolExecutor(1) as pool:
        one, two = pserver.join(0), pserver.join(1)
        waits = pool.submit(meet, one, 5, 2)
        wait_for(pserver, 0)

        complete(two)

        assert waits.result(60.0) == NO_OTHER


def test_a_wait_that_is_over_names_clock_and_missing_trainer() -> None:
    clock = ManualClock()
    service = inproc_pserver(trainers=2, mode=specs.Ssp(), clock=clock, wait_timeout_s=WAIT_S)
    with service as pserver, ThreadPoolExecutor(1) as pool:
        one, _ = pserver.join(0), pserver.join(1)
        waits: Future[Any] = pool.submit(meet, one, 5, 2)
        wait_for(pserver, 0)

        clock.advance(WAIT_S)
        pserver.service.expire()

        with pytest.raises(
            DeadlineError, match=r"on clock 'step' for trainer 1 \(last call 20.0 s ago\)"
        ):
            waits.result(60.0)


def test_the_deadline_thread_ends_a_meeting_by_itself() -> None:
    with inproc_pserver(trainers=2, mode=specs.Ssp(), wait_timeout_s=0.05) as pserver:
        client = pserver.join(0)

        with pytest.raises(DeadlineError, match=r"trainer 1 \(never seen\) to reach 2"):
            meet(client, 5, 2)


def test_a_caller_with_little_patience_hears_the_reason_before_it_gives_up() -> None:
    clock, patience_s = ManualClock(), 60.0
    service = inproc_pserver(trainers=2, mode=specs.Ssp(), clock=clock, wait_timeout_s=600.0)
    with service as pserver, ThreadPoolExecutor(1) as pool:
        waits: Future[Any] = pool.submit(meet, pserver.join(0), 5, 2, patience_s)
        wait_for(pserver, 0)

        clock.advance(0.96 * patience_s)
        pserver.service.expire()

        with pytest.raises(DeadlineError, match="to reach 2; the slowest is at 0"):
            waits.result(60.0)


@pytest.mark.parametrize("fault", [Fault.RESET_AFTER, Fault.DUPLICATE, Fault.RESET_BEFORE])
def test_a_meeting_whose_message_suffers_is_held_once_more(fault: Fault) -> None:
    with inproc_pserver(trainers=2, mode=specs.Ssp()) as pserver:
        one, two = pserver.join(0), pserver.join(1)
        pserver.server.faults.script(fault, Method.MEET)

        meet(one, 1, 0)

        assert meet(two, 1, 1) == 1
        assert pserver.service.status()["clocks"] == [
            {"clock": "step", "reached": [1, 1], "waiting": [], "waiting_s": {}}
        ]


def test_a_process_that_was_replaced_waits_no_longer() -> None:
    with inproc_pserver(trainers=2, mode=specs.Ssp()) as pserver, ThreadPoolExecutor(1) as pool:
        waits: Future[Any] = pool.submit(meet, pserver.join(0), 5, 2)
        wait_for(pserver, 0)

        pserver.join(0, incarnation=2000)

        with pytest.raises(JobError, match="trainer 0 came back as a new process"):
            waits.result(60.0)


@pytest.mark.parametrize("mode", [specs.Sync(), specs.Ssp()])
def test_stopping_ends_every_meeting(mode: specs.CommunicationMode) -> None:
    with inproc_pserver(trainers=2, mode=mode) as pserver, ThreadPoolExecutor(1) as pool:
        waits: Future[Any] = pool.submit(meet, pserver.join(0), 5, 2)
        wait_for(pserver, 0)

        pserver.service.stop()

        with pytest.raises(UnavailableError, match="shutting down") as refused:
            waits.result(60.0)
        assert refused.value.code is ErrorCode.STOPPING
