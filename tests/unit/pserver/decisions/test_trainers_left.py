"""Trainers whose process leaves without completing: each policy in each mode, and the job's end."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from psrt.core.errors import DeadlineError, ErrorCode, JobError, PsrtError
from psrt.core.specs import Async, CommunicationMode, Geo, HalfAsync, Ssp, Sync
from psrt.pserver.decisions.calls import Fail, Forget, Instruction, SendReply, WaitingCall, Warn
from psrt.pserver.decisions.clocks import Meeting
from psrt.pserver.decisions.job_identity import JobIdentity
from psrt.pserver.decisions.pserver_state import PserverState
from psrt.pserver.decisions.saved_state import describe
from psrt.pserver.serving.connections import TrainerConnections
from psrt.pserver.serving.service import PserverService
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.server import Server
from psrt.rpc.serving import Peer
from psrt.rpc.wire import PUSH_DENSE
from tests.support.carriers import eventually
from tests.support.clock import ManualClock
from tests.support.pserver import CALL_TIMEOUT_S, joined

WAIT_TIMEOUT_S = 10.0
FATES = ("completes", "finishes without the others", "dies", "is silent", "never comes")
MODES = (Async(), HalfAsync(), Ssp(), Geo(), Sync())
POLICIES = ("wait", "shrink", "abort")


class World:
    """Trainers of a job that join at 0 s and call once; `gone` are the processes that have left."""

    def __init__(self, trainers: int, mode: CommunicationMode) -> None:
        self.gone: set[tuple[int, int]] = set()
        self.state = PserverState(WAIT_TIMEOUT_S, is_gone=lambda *process: process in self.gone)
        self.job = JobIdentity("job", "plan", trainers, mode)
        self.instructions: list[Instruction] = []

    def join(self, trainer: int, now: float = 0.0, incarnation: int = 0) -> None:
        number = incarnation or 100 + trainer
        self.state.hello(trainer, number, self.job, now)
        self.state.attend(trainer, number, now)

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
        if fate == "finishes without the others":
            self.complete(trainer, now=1.0)

    def pass_time(self, until_s: float) -> None:
        """Run everything that is due until then."""
        while (due_s := self.state.next_deadline()) is not None and due_s <= until_s:
            self.instructions += self.state.expire(due_s)

    def warnings(self) -> list[str]:
        return [each.text for each in self.instructions if isinstance(each, Warn)]

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


def aborted(state: PserverState) -> PsrtError:
    assert state.aborted is not None
    return state.aborted


# --- every mode, policy and fate --------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
@pytest.mark.parametrize("trainers", [1, 2, 3])
def test_the_policy_applies_to_those_that_left_and_a_job_without_processes_ends(
    trainers: int, mode: CommunicationMode, policy: str
) -> None:
    for fates in itertools.product(FATES, repeat=trainers):
        world = World(trainers, replace(mode, on_trainer_loss=policy))
        for trainer, fate in enumerate(fates):
            world.meet(fate, trainer)

        world.pass_time(3 * WAIT_TIMEOUT_S)

        dead, alive = "dies" in fates, "is silent" in fates
        finished = policy == "shrink" and "finishes without the others" in fates
        expected_lost = dead and not alive and not finished
        expected_abort = dead and alive and policy == "abort"
        given_up = dead and (policy == "shrink" or not alive)
        assert (world.state.lost is not None) == expected_lost, fates
        assert (world.state.aborted is not None) == expected_abort, fates
        assert ("lost" in world.states()) == given_up, fates
        assert world.states().count("lost") in (0, fates.count("dies"))
        open_places = alive or "never comes" in fates or (dead and not given_up)
        completed = "completes" in fates or "finishes without the others" in fates
        assert world.state.members.ended() == (completed and not open_places), fates


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
def test_the_policy_applies_at_once_to_a_trainer_that_was_interrupted(
    mode: CommunicationMode, policy: str
) -> None:
    world = world_of(2, replace(mode, on_trainer_loss=policy))

    instructions = world.state.leave(1, 101, 5.0)

    assert (world.state.aborted is not None) == (policy == "abort")
    assert (Forget(1) in instructions) == (policy == "shrink")
    assert world.states() == ["running", "lost" if policy == "shrink" else "running"]
    told = [aborted(world.state).message] if policy == "abort" else _warnings(instructions)
    assert "trainer 1 (interrupted, last call 0.0 s ago) left without completing" in told[0]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_job_ends_with_its_last_trainer_that_was_interrupted(policy: str) -> None:
    world = world_of(2, Async(on_trainer_loss=policy))
    world.complete(0, now=1.0)

    world.state.leave(1, 101, 5.0)
    at_once = world.state.lost
    world.pass_time(3 * WAIT_TIMEOUT_S)

    assert (at_once is None) == (policy == "wait")
    assert "trainer 1 (interrupted, last call" in lost(world.state).message


def test_a_repeated_report_of_an_interruption_changes_nothing() -> None:
    world = world_of(3, Async())

    first = world.state.leave(1, 101, 5.0)
    again = world.state.leave(1, 101, 6.0)

    assert (len(_warnings(first)), again) == (1, [])
    assert world.states() == ["running", "lost", "running"]


def test_a_round_goes_on_at_once_without_an_interrupted_trainer() -> None:
    world = world_of(2, Sync("shrink"))
    push = WaitingCall(0, 100, 1, 99.0)
    assert world.state.exchange(push, 1.0) == []

    instructions = world.state.leave(1, 101, 2.0)

    assert [type(each).__name__ for each in instructions] == ["Warn", "Close", "Forget"]


@pytest.mark.parametrize("policy", ["wait", "shrink"])
def test_a_new_process_takes_the_place_of_an_interrupted_trainer(policy: str) -> None:
    world = world_of(2, Async(on_trainer_loss=policy))
    world.state.leave(1, 101, 5.0)

    world.join(1, now=6.0, incarnation=201)
    world.state.complete(1, 201, 7.0)
    world.complete(0, now=8.0)

    assert world.states() == ["completed", "completed"]


def _warnings(instructions: list[Instruction]) -> list[str]:
    return [each.text for each in instructions if isinstance(each, Warn)]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
def test_processes_that_sent_hello_and_nothing_else_do_not_keep_a_pserver(
    mode: CommunicationMode, policy: str
) -> None:
    world = World(3, replace(mode, on_trainer_loss=policy))
    world.state = PserverState(WAIT_TIMEOUT_S, is_gone=TrainerConnections().is_gone)
    world.state.hello(0, 100, world.job, 0.0)
    world.state.hello(1, 101, world.job, 0.0)

    world.pass_time(WAIT_TIMEOUT_S - 0.1)
    before = world.state.lost
    world.pass_time(WAIT_TIMEOUT_S)

    assert before is None
    assert lost(world.state).message == (
        "trainer 0 (gone, last call 10.0 s ago), trainer 1 (gone, last call 10.0 s ago) left "
        "without completing, and no other trainer runs; the job was ended. Never seen: trainer 2."
    )


def test_a_process_that_was_killed_before_its_connection_lasted_does_not_keep_a_pserver() -> None:
    """ATTEND over gRPC is a call; the connection that lasts follows it."""
    world = world_of(1)
    world.state = PserverState(WAIT_TIMEOUT_S, is_gone=TrainerConnections().is_gone)
    world.state.hello(0, 100, world.job, 0.0)
    world.state.attend(0, 100, 0.0)

    world.pass_time(2 * WAIT_TIMEOUT_S - 0.1)
    before = world.state.lost
    world.pass_time(2 * WAIT_TIMEOUT_S)

    assert before is None
    assert "trainer 0 (gone, last call 20.0 s ago) left" in lost(world.state).message


def test_a_process_without_connections_that_has_called_is_never_gone() -> None:
    state = PserverState(WAIT_TIMEOUT_S, is_gone=TrainerConnections().is_gone)
    state.hello(0, 100, JobIdentity("job", "plan", 1, Async()), 0.0)
    state.attend(0, 100, 0.0)
    state.called(0, 100, 0.0)

    for now in (10.0, 100.0, 1000.0):
        state.expire(now)

    assert state.lost is None
    assert describe(state, 1000.0)["trainers"][0]["presence"] == "unknown"


# --- when -------------------------------------------------------------------------------------


def test_a_trainer_is_lost_when_it_was_gone_for_the_whole_time_and_not_before() -> None:
    world = world_of(2)
    world.die(1)
    world.pass_time(2.5)  # the first check finds that it has left

    world.pass_time(12.4)
    before = world.states()
    world.state.called(0, 100, 12.4)
    world.pass_time(12.5)

    assert before == ["running", "running"]
    assert world.states() == ["running", "lost"]
    assert world.warnings() == [
        "trainer 1 (gone, last call 12.5 s ago) left without completing; the job goes on without it"
    ]
    assert world.instructions[1:] == [Forget(1)]


def test_a_trainer_that_calls_again_was_not_gone() -> None:
    world = world_of(2)
    world.die(1)
    world.pass_time(11.0)

    world.state.called(1, 101, 11.0)
    world.pass_time(22.0)
    before = world.states()
    world.pass_time(22.5)

    assert before == ["running", "running"]
    assert world.states() == ["running", "lost"]


@pytest.mark.parametrize("mode", [Async(), HalfAsync(), Geo(), Ssp(), Sync("shrink")], ids=str)
def test_a_trainer_whose_process_lives_is_never_given_up_for_its_silence(
    mode: CommunicationMode,
) -> None:
    world = world_of(2, mode)

    for hour in range(1, 25):
        world.pass_time(3600.0 * hour)
        world.state.called(0, 100, 3600.0 * hour)

    assert world.states() == ["running", "running"]
    assert world.warnings() == []


def test_a_silent_trainer_that_is_waited_for_alone_is_named_once() -> None:
    world = world_of(2)
    world.complete(1)
    world.pass_time(30.0)
    world.complete(0, 30.0)

    words = "trainer 0 (last call 10.0 s ago) to complete"
    assert world.warnings() == [f"all other trainers have ended; still waiting for {words}"]
    assert world.state.members.ended()
    assert world.state.lost is None


def test_the_error_names_the_lost_trainers_and_their_last_calls() -> None:
    world = world_of(3)
    world.complete(1)
    world.die(0)
    world.die(2)

    world.pass_time(12.5)

    assert lost(world.state).code is ErrorCode.TRAINER_LOST
    assert lost(world.state).message == (
        "trainer 0 (gone, last call 12.5 s ago), trainer 2 (gone, last call 12.5 s ago) left "
        "without completing, and no other trainer runs; the job was ended."
    )


# --- the policies -----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
def test_an_aborted_job_refuses_every_further_step_with_the_name_of_the_lost(
    mode: CommunicationMode,
) -> None:
    world = world_of(2, replace(mode, on_trainer_loss="abort"))
    world.die(1)
    world.pass_time(12.5)
    is_sync = isinstance(mode, Sync)
    step = world.state.exchange if is_sync else lambda c, now: world.state.push(c, 1, now)

    assert aborted(world.state).code is ErrorCode.TRAINER_LOST
    with pytest.raises(JobError, match=r"trainer 1 \(gone, .* left .*; the job was aborted"):
        step(WaitingCall(0, 100, 1, 99.0), 13.0)
    with pytest.raises(JobError, match="trainer 1"):
        world.state.pull(0, 100, 13.0, acknowledges=False)
    assert describe(world.state, 13.0)["error"]["code"] == ErrorCode.TRAINER_LOST


def test_with_wait_the_place_is_kept_while_another_trainer_runs_and_each_loss_is_named_once() -> (
    None
):
    world = world_of(2, Async(on_trainer_loss="wait"))
    world.die(1)
    world.pass_time(100.0)
    records = describe(world.state, 100.0)["trainers"]

    world.join(1, now=101.0, incarnation=7)
    world.pass_time(200.0)

    assert [record["presence"] for record in records] == ["present", "gone"]
    assert world.warnings() == [
        "trainer 1 (gone, last call 12.5 s ago) left without completing; its place is kept for a "
        "new process (on_trainer_loss = wait)"
    ]
    assert world.states() == ["running", "running"]


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
def test_with_abort_a_new_process_in_the_place_of_a_running_one_ends_the_job(
    mode: CommunicationMode,
) -> None:
    world = world_of(2, replace(mode, on_trainer_loss="abort"))

    world.join(1, now=1.0, incarnation=7)

    assert "trainer 1 came back as a new process" in aborted(world.state).message


def test_a_new_process_takes_the_place_of_a_dead_one_in_time() -> None:
    world = world_of(1)
    world.die(0)
    world.pass_time(9.0)
    world.join(0, now=9.0, incarnation=7)

    world.pass_time(100.0)

    assert world.state.lost is None
    assert world.states() == ["running"]


def test_a_pserver_that_stays_takes_a_new_process_of_a_lost_trainer_but_not_the_old_one() -> None:
    world = world_of(1)
    world.die(0)
    world.pass_time(12.5)

    with pytest.raises(JobError, match="given up as lost"):
        world.state.push(WaitingCall(0, 100, 1, 99.0), 1, 13.0)
    world.join(0, now=14.0, incarnation=7)

    assert world.states() == ["running"]
    assert world.state.next_deadline() == 16.5


def test_a_trainer_that_still_runs_keeps_the_job_until_it_completes() -> None:
    world = world_of(2, Async(on_trainer_loss="wait"))
    world.die(1)
    for now in (9.0, 15.0, 24.0):
        world.state.called(0, 100, now)
        world.pass_time(now + 4.0)
    before = world.state.lost
    world.complete(0, 29.0)

    world.pass_time(39.0)

    assert before is None
    assert world.states() == ["completed", "lost"]
    assert "trainer 1 (gone, last call 30." in lost(world.state).message


# --- waits for a trainer that has left --------------------------------------------------------


def ssp_with_a_wait(policy: str) -> tuple[World, WaitingCall]:
    """Trainer 0 waits from 5 s on for trainer 1, which dies after that."""
    world = world_of(2, Ssp(on_trainer_loss=policy))
    call = WaitingCall(0, 100, 0, 99.0)
    world.state.meet(call, Meeting("step", 5, 2), 5.0)
    world.pass_time(14.9)
    return world, call


def test_a_wait_goes_on_without_a_trainer_that_is_gone_when_it_ends() -> None:
    world, call = ssp_with_a_wait("shrink")
    world.die(1)

    world.pass_time(15.0)

    kinds = [type(instruction) for instruction in world.instructions]
    assert kinds == [Warn, SendReply, Forget]
    assert world.instructions[1] == SendReply(call)
    assert world.states() == ["running", "lost"]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_wait_for_a_trainer_that_lives_ends_with_its_name(policy: str) -> None:
    world, call = ssp_with_a_wait(policy)

    world.pass_time(15.0)

    (fail,) = world.instructions
    assert isinstance(fail, Fail)
    assert fail.call is call
    assert isinstance(fail.error, DeadlineError)
    assert "for trainer 1 (last call 15.0 s ago) to reach 2" in fail.error.message
    assert world.states() == ["running", "running"]


def test_with_wait_a_wait_for_a_trainer_that_is_gone_ends_with_its_name() -> None:
    world, _ = ssp_with_a_wait("wait")
    world.die(1)

    world.pass_time(15.0)

    fails = [each for each in world.instructions if isinstance(each, Fail)]
    assert "for trainer 1 (gone, last call 15.0 s ago)" in fails[0].error.message
    assert world.states() == ["running", "running"]


def test_with_abort_a_wait_for_a_trainer_that_is_gone_ends_the_job() -> None:
    world, call = ssp_with_a_wait("abort")
    world.die(1)

    world.pass_time(15.0)

    fails = [each for each in world.instructions if isinstance(each, Fail)]
    assert [(fail.call, fail.error.code) for fail in fails] == [(call, ErrorCode.TRAINER_LOST)]
    assert world.state.next_deadline() is None


def test_the_wait_of_a_lost_trainer_ends() -> None:
    world, call = ssp_with_a_wait("shrink")
    world.die(0)
    world.die(1)

    world.pass_time(30.0)

    assert [each for each in world.instructions if isinstance(each, SendReply)] == [SendReply(call)]
    assert world.states() == ["lost", "lost"]
    world.state.clocks.check()


# --- connections ------------------------------------------------------------------------------


def connection() -> Peer:
    return Peer("stream-tcp", "127.0.0.1:1")


def test_a_process_is_gone_after_its_last_connection() -> None:
    connections, first, second = TrainerConnections(), connection(), connection()
    connections.add(1, 7, first)
    connections.add(1, 7, second)
    connections.add(1, 7, second)

    seen = [connections.is_gone(1, 7)]
    first.has_left = True
    seen.append(connections.is_gone(1, 7))
    second.has_left = True
    seen.append(connections.is_gone(1, 7))

    assert seen == [False, False, True]


def test_whether_a_process_that_never_had_a_connection_is_gone_is_unknown() -> None:
    connections, former = TrainerConnections(), connection()
    connections.add(1, 7, former)
    former.has_left = True

    assert connections.is_gone(1, 8) is None
    assert connections.is_gone(0, 7) is None


def test_a_connection_that_its_carrier_keeps_no_more_has_ended() -> None:
    connections, only = TrainerConnections(), connection()
    connections.add(1, 7, only)
    del only

    assert connections.is_gone(1, 7)


@pytest.mark.parametrize("unix_dir", ["off", ""])
def test_a_service_ends_with_an_error_when_its_last_trainer_hangs_up(unix_dir: str) -> None:
    clock, ends = ManualClock(), list[PsrtError | None]()
    service = PserverService(stripes=2, wait_timeout_s=10.0, clock=clock, on_end=ends.append)
    server = Server(service.handle, unix_dir=unix_dir)
    server.start()
    mode = Async(on_trainer_loss="wait")
    clients = [joined(server.endpoint, t, trainers=2, mode=mode) for t in range(2)]
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
