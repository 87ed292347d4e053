"""A pserver ends if the trainers it waits for have left without completing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from psrt.core.errors import ErrorCode, JobError, PsrtError
from psrt.core.specs import Async, CommunicationMode, Geo, HalfAsync, Ssp, Sync
from psrt.pserver.decisions.calls import Fail, WaitingCall, Warn
from psrt.pserver.decisions.clocks import Meeting
from psrt.pserver.decisions.job_identity import JobIdentity
from psrt.pserver.decisions.pserver_state import PserverState
from psrt.pserver.serving.connections import TrainerConnections
from psrt.pserver.serving.service import PserverService
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.server import Server
from psrt.rpc.wire import PUSH_DENSE
from tests.support.carriers import eventually
from tests.support.clock import ManualClock
from tests.support.pserver import CALL_TIMEOUT_S, joined

WAIT_TIMEOUT_S = 10.0
FATES = ("completes", "dies", "is silent", "never comes")


class World:
    """Trainers of a job that joined at 0 s; `gone` are the processes without a connection."""

    def __init__(self, trainers: int, mode: CommunicationMode) -> None:
        self.gone: set[tuple[int, int]] = set()
        self.state = PserverState(WAIT_TIMEOUT_S, is_gone=lambda *process: process in self.gone)
        self.job = JobIdentity("job", "plan", trainers, mode)

    def join(self, trainer: int, now: float = 0.0, incarnation: int = 0) -> None:
        self.state.hello(trainer, incarnation or 100 + trainer, self.job, now)

    def die(self, trainer: int) -> None:
        self.gone.add((trainer, 100 + trainer))

    def complete(self, trainer: int, now: float = 0.0) -> None:
        self.state.complete(trainer, 100 + trainer, now)

    def meet(self, fate: str, trainer: int) -> None:
        if fate != "never comes":
            self.join(trainer)
        if fate == "dies":
            self.die(trainer)
        if fate == "completes":
            self.complete(trainer)

    def states(self) -> list[str]:
        return [record["state"] for record in self.state.members.records(0.0)]


def world_of(trainers: int, mode: CommunicationMode | None = None) -> World:
    world = World(trainers, mode or Async())
    for trainer in range(trainers):
        world.join(trainer)
    return world


def lost(state: PserverState) -> PsrtError:
    assert state.lost is not None
    return state.lost


@pytest.mark.parametrize(
    "mode",
    [Async(), HalfAsync(), Ssp(), Geo(), Sync("abort"), Sync("shrink"), Sync("wait")],
    ids=str,
)
@pytest.mark.parametrize("trainers", [1, 2, 3])
def test_a_job_is_lost_when_all_that_did_not_complete_have_left(
    trainers: int, mode: CommunicationMode
) -> None:
    for fates in itertools.product(FATES, repeat=trainers):
        world = World(trainers, mode)
        for trainer, fate in enumerate(fates):
            world.meet(fate, trainer)

        world.state.expire(WAIT_TIMEOUT_S)

        left = "dies" in fates and set(fates) <= {"dies", "completes"}
        expected = left and mode != Sync("wait")
        assert (world.state.lost is not None) == expected, fates
        assert ("lost" in world.states()) == expected, fates
        assert world.state.members.ended() == (
            "completes" in fates and (expected or set(fates) == {"completes"})
        )


def test_the_error_names_the_lost_trainers_and_their_last_calls() -> None:
    world = world_of(3)
    world.complete(1)
    world.die(0)
    world.die(2)

    world.state.expire(12.0)

    assert lost(world.state).code is ErrorCode.TRAINER_LOST
    assert lost(world.state).message == (
        "trainer 0 (last call 12.0 s ago), trainer 2 (last call 12.0 s ago) left without "
        "completing, and no other trainer runs; the job was ended."
    )


def test_a_trainer_that_still_runs_keeps_the_job_until_it_completes() -> None:
    world = world_of(2)
    world.die(1)
    checks = []
    for now in (9.0, 15.0, 24.0):
        world.state.called(0, 100, now)
        world.state.expire(now + 4.0)
        checks.append((world.state.lost, world.state.next_deadline()))
    world.complete(0, 29.0)

    world.state.expire(39.0)

    assert checks == [(None, 19.0), (None, 25.0), (None, 34.0)]
    assert world.states() == ["completed", "lost"]
    assert "trainer 1 (last call 39.0 s ago)" in lost(world.state).message


def test_no_trainer_is_lost_before_the_timeout() -> None:
    world = world_of(1)
    world.die(0)

    world.state.expire(WAIT_TIMEOUT_S - 0.1)

    assert world.state.lost is None
    assert world.state.next_deadline() == WAIT_TIMEOUT_S


def test_a_silent_trainer_with_a_connection_is_waited_for_and_named_once() -> None:
    world = world_of(2)
    world.complete(1)

    first = world.state.expire(10.0)
    second = world.state.expire(20.0)
    world.state.called(0, 100, 25.0)
    world.complete(0, 25.0)

    words = "trainer 0 (last call 10.0 s ago) to complete"
    assert first == [Warn(f"all other trainers have ended; still waiting for {words}")]
    assert second == []
    assert world.state.members.ended()
    assert world.state.lost is None


def test_a_trainer_that_dies_after_a_long_silence_is_found_at_the_next_check() -> None:
    world = world_of(1)
    world.state.expire(10.0)
    world.die(0)

    next_look_s = world.state.next_deadline()
    world.state.expire(20.0)

    assert next_look_s == 20.0
    assert world.states() == ["lost"]


def test_a_new_process_takes_the_place_of_a_dead_one_in_time() -> None:
    world = world_of(1)
    world.die(0)
    world.join(0, now=9.0, incarnation=7)

    world.state.expire(10.0)
    world.state.expire(19.0)

    assert world.state.lost is None
    assert world.states() == ["running"]


def test_a_pserver_that_stays_takes_a_new_process_of_a_lost_trainer_but_not_the_old_one() -> None:
    world = world_of(1)
    world.die(0)
    world.state.expire(10.0)

    with pytest.raises(JobError, match="given up as lost"):
        world.state.push(WaitingCall(0, 100, 1, 99.0), 1, 11.0)
    world.join(0, now=12.0, incarnation=7)

    assert world.states() == ["running"]
    assert world.state.next_deadline() == 22.0


def test_the_wait_of_a_lost_trainer_ends() -> None:
    world = world_of(2, Ssp())
    call = WaitingCall(0, 100, 0, 99.0)
    world.state.meet(call, Meeting("step", 5, 2), 5.0)
    world.die(0)
    world.die(1)

    (ended,) = world.state.expire(15.0)

    assert isinstance(ended, Fail)
    assert ended.call is call
    assert world.states() == ["lost", "lost"]
    world.state.clocks.check()


# --- connections ------------------------------------------------------------------------------


class Connection:
    """A stand-in for a connection."""


def test_a_process_is_gone_after_its_last_connection() -> None:
    connections, first, second = TrainerConnections(), Connection(), Connection()
    connections.add(1, 7, first)
    connections.add(1, 7, second)
    connections.add(1, 7, second)

    seen = [connections.is_gone(1, 7)]
    del first
    seen.append(connections.is_gone(1, 7))
    del second
    seen.append(connections.is_gone(1, 7))

    assert seen == [False, False, True]


def test_a_process_that_never_had_a_connection_is_not_gone() -> None:
    connections, former = TrainerConnections(), Connection()
    connections.add(1, 7, former)
    del former

    assert not connections.is_gone(1, 8)
    assert not connections.is_gone(0, 7)


def test_a_connection_in_a_cycle_of_references_does_not_live_on() -> None:
    connections, connection = TrainerConnections(), Connection()
    connection.itself = connection  # type: ignore[attr-defined]
    connections.add(1, 7, connection)
    del connection

    assert connections.is_gone(1, 7)


@pytest.mark.parametrize("unix_dir", ["off", ""])
def test_a_service_ends_with_an_error_when_its_last_trainer_hangs_up(unix_dir: str) -> None:
    clock, ends = ManualClock(), list[PsrtError | None]()
    service = PserverService(stripes=2, wait_timeout_s=10.0, clock=clock, on_end=ends.append)
    server = Server(service.handle, unix_dir=unix_dir)
    server.start()
    clients = [joined(server.endpoint, t, trainers=2, mode=Async()) for t in range(2)]
    try:
        for client in clients:
            header = pb.Header(push_key=client.next_push_key(), step=1)
            header.parts.add(kind=PUSH_DENSE, table="w")
            ones = [np.ones(4, np.float32)]
            client.call(Method.PUSH, header=header, tensors=ones, timeout_s=CALL_TIMEOUT_S)
        clients[0].call(Method.COMPLETE, timeout_s=CALL_TIMEOUT_S)
        clock.advance(10.0)
        service.expire()
        before = list(ends)
        clients[1].close()

        def has_ended() -> bool:
            clock.advance(10.0)
            service.expire()
            return bool(ends)

        eventually(has_ended, "the end of the job")
    finally:
        clients[0].close()
        service.stop()
        server.stop(1.0)

    assert before == []
    assert [error.code for error in ends if error is not None] == [ErrorCode.TRAINER_LOST]
