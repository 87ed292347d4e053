"""Clocks of trainers in every order, and single cases: deadline, loss, restart, bad names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from psrt.core.errors import DeadlineError, ErrorCode, JobError, PsrtError, WireError
from psrt.core.specs import CommunicationMode, Ssp, Sync
from psrt.pserver.decisions.calls import (
    Close,
    Fail,
    Forget,
    Instruction,
    SendReply,
    WaitingCall,
    Warn,
)
from psrt.pserver.decisions.clocks import MAX_CLOCKS, NO_OTHER, Meeting
from psrt.pserver.decisions.job_identity import JobIdentity
from psrt.pserver.decisions.pserver_state import PserverState
from psrt.pserver.decisions.saved_state import describe

WAIT_TIMEOUT_S = 10.0
Step = tuple[str, int]  # kind, trainer


class World:
    """Trainers under SSP: one that has finished n steps waits until the others have n − `ahead`.

    Steps: `finish` (one more step, then MEET) · `retry` (the last MEET on a new call) · `complete`
    · `restart` (a new process joins) · `begin` (it asks where to continue). A plain model of
    `time` and `ended` by trainer decides which may go on.
    """

    def __init__(self, trainers: int, ahead: int) -> None:
        self.state = PserverState(WAIT_TIMEOUT_S)
        self.ahead = ahead
        self.job = JobIdentity("job", "plan", trainers, Ssp(ahead))
        self.incarnation = {trainer: 100 + trainer for trainer in range(trainers)}
        self.own = dict.fromkeys(range(trainers), 0)  # steps of the current process
        self.time = dict.fromkeys(range(trainers), 0)
        self.ended: set[int] = set()
        self.calls: dict[WaitingCall, tuple[int, list[str]]] = {}  # awaited, outcomes
        self.last: dict[int, WaitingCall] = {}
        for trainer in range(trainers):
            self.state.hello(trainer, self.incarnation[trainer], self.job, 0.0)

    def can(self, step: Step) -> bool:
        what, trainer = step
        call = self.last.get(trainer)
        if what == "retry":
            return call is not None
        return what == "restart" or call is None or bool(self.calls[call][1])

    def do(self, step: Step) -> None:
        what, trainer = step
        for instruction in getattr(self, f"_{what}")(trainer):
            self._obey(instruction)
        self.state.clocks.check()
        for call, (awaited, outcomes) in self.calls.items():
            assert outcomes or not self.may_go_on(call.trainer, awaited), "waits in vain"

    def may_go_on(self, trainer: int, awaited: int) -> bool:
        others = set(self.time) - self.ended - {trainer}
        return all(self.time[other] >= awaited for other in others)

    def _finish(self, trainer: int) -> list[Instruction]:
        self.own[trainer] += 1
        self.time[trainer] = max(self.time[trainer], self.own[trainer])
        return self._retry(trainer)

    def _retry(self, trainer: int) -> list[Instruction]:
        reached = self.own[trainer]
        awaited = max(0, reached - self.ahead)
        call = WaitingCall(trainer, self.incarnation[trainer], 0, 1000.0)
        self.calls[call] = (awaited, [])
        self.last[trainer] = call
        return self.state.meet(call, Meeting("step", reached, awaited), 0.0)

    def _complete(self, trainer: int) -> list[Instruction]:
        self.ended.add(trainer)
        return self.state.complete(trainer, self.incarnation[trainer], 0.0)

    def _restart(self, trainer: int) -> list[Instruction]:
        self.incarnation[trainer] += 1000
        self.own[trainer] = 0
        self.last.pop(trainer, None)
        self.state.hello(trainer, self.incarnation[trainer], self.job, 0.0)
        return self.state.attend(trainer, self.incarnation[trainer], 0.0)

    def _begin(self, trainer: int) -> list[Instruction]:
        meeting = Meeting("step", 0, 0, begins=True)
        call = WaitingCall(trainer, self.incarnation[trainer], 0, 1000.0)
        others = set(self.time) - self.ended - {trainer}
        slowest = min((self.time[other] for other in others), default=0)
        self.own[trainer] = self.time[trainer] = max(self.time[trainer], slowest)
        self.calls[call] = (0, [])
        self.last[trainer] = call
        instructions = self.state.meet(call, meeting, 0.0)
        assert self.state.clocks.begin(trainer, meeting) == self.own[trainer]
        return instructions

    def _obey(self, instruction: Instruction) -> None:
        match instruction:
            case SendReply(call, _):
                awaited, outcomes = self.calls[call]
                assert self.may_go_on(call.trainer, awaited), "went on too early"
                outcomes.append("answered")
            case Fail(call, error):
                self.calls[call][1].append(error.code.name)

    def outcomes(self) -> list[str]:
        return [outcome for _, outcomes in self.calls.values() for outcome in outcomes]


def all_orders(scripts: dict[int, list[str]], ahead: int) -> Iterator[World]:
    """The worlds after every interleaving of `scripts` in which each step is possible."""

    def extend(path: list[Step]) -> Iterator[World]:
        world = World(len(scripts), ahead)
        for step in path:
            world.do(step)
        done = {t: sum(trainer == t for _, trainer in path) for t in scripts}
        nexts = [(steps[done[t]], t) for t, steps in scripts.items() if done[t] < len(steps)]
        possible = [step for step in nexts if world.can(step)]
        if not possible:
            assert not nexts, f"stuck after {path}"
            yield world
        for step in possible:
            yield from extend([*path, step])

    yield from extend([])


# --- every order -----------------------------------------------------------------------------


@pytest.mark.parametrize("ahead", [0, 1, 2, 9])
def test_in_every_order_no_trainer_runs_ahead_or_hangs(ahead: int) -> None:
    scripts = {0: ["finish"] * 3, 1: ["finish"] * 3}

    worlds = list(all_orders(scripts, ahead))

    assert len(worlds) == {0: 8, 1: 18, 2: 20, 9: 20}[ahead]
    assert all(world.outcomes() == ["answered"] * 6 for world in worlds)


@pytest.mark.parametrize("ahead", [0, 1])
def test_in_every_order_an_early_completion_releases_the_others(ahead: int) -> None:
    scripts = {
        0: ["finish", "finish", "finish", "complete"],
        1: ["finish", "complete"],
        2: ["finish", "finish", "complete"],
    }

    worlds = list(all_orders(scripts, ahead))

    assert all(world.outcomes() == ["answered"] * 6 for world in worlds)
    assert all(world.state.members.ended() for world in worlds)


def test_in_every_order_repeated_calls_are_each_answered_and_move_no_clock() -> None:
    scripts = {0: ["finish", "retry", "finish", "retry"], 1: ["finish", "retry", "finish"]}

    worlds = list(all_orders(scripts, 1))

    assert all(world.outcomes() == ["answered"] * 7 for world in worlds)
    assert all(record_of(world.state)["reached"] == [2, 2] for world in worlds)


def test_in_every_order_a_restarted_trainer_continues_where_the_former_process_was() -> None:
    scripts = {0: ["finish"] * 3, 1: ["finish", "finish", "restart", "begin", "finish"]}

    worlds = list(all_orders(scripts, 1))

    assert {outcome for world in worlds for outcome in world.outcomes()} == {
        "answered",
        "TRAINER_LOST",  # the call of the process that was replaced
    }
    reached = {tuple(record_of(world.state)["reached"]) for world in worlds}
    assert reached == {(3, 3), (3, 4)}  # it begins at 2, or at 3 if the other is there already


# --- single cases ----------------------------------------------------------------------------


def state_of(trainers: int, mode: CommunicationMode | None = None) -> PserverState:
    """Trainer 0 of `trainers` has sent HELLO."""
    state = PserverState(WAIT_TIMEOUT_S)
    job = JobIdentity("job", "plan", trainers, mode or Ssp())
    state.hello(0, 100, job, 0.0)
    return state


def call_of(trainer: int, deadline_s: float = 1000.0) -> WaitingCall:
    return WaitingCall(trainer, 100 + trainer, 0, deadline_s)


def meet(state: PserverState, trainer: int, reached: int, awaited: int, **more: Any) -> WaitingCall:
    """The call of a MEET; its instructions are appended to the list `instructions`."""
    call = call_of(trainer, more.get("deadline_s", 1000.0))
    meeting = Meeting(more.get("clock", "step"), reached, awaited)
    more.get("instructions", []).extend(state.meet(call, meeting, more.get("now", 0.0)))
    return call


def join(state: PserverState, trainer: int, now: float = 0.0) -> None:
    assert state.job is not None
    state.hello(trainer, 100 + trainer, state.job, now)


def record_of(state: PserverState, clock: str = "step") -> dict[str, Any]:
    (record,) = [r for r in state.clocks.describe(0.0) if r["clock"] == clock]
    return record


def failure(instructions: list[Instruction]) -> tuple[WaitingCall, PsrtError]:
    (instruction,) = instructions
    assert isinstance(instruction, Fail)
    return instruction.call, instruction.error


def test_an_expired_wait_names_the_clock_and_the_missing_trainers_with_their_last_call() -> None:
    state = state_of(3)
    join(state, 1, now=2.0)
    call = meet(state, 0, 7, 4, now=3.0)
    meet(state, 1, 3, 0, now=5.0)

    early = state.expire(12.9)
    late, error = failure(state.expire(13.0))

    assert early == []
    assert late is call
    assert isinstance(error, DeadlineError)
    assert error.message == (
        "trainer 0 waited 10.0 s on clock 'step' for trainer 1 (last call 8.0 s ago), "
        "trainer 2 (never seen) to reach 4; the slowest is at 0. The wait was ended."
    )


def test_a_caller_with_a_shorter_timeout_than_the_pserver_is_answered_first() -> None:
    state = state_of(2)
    impatient = meet(state, 0, 1, 1, deadline_s=4.0)
    meet(state, 0, 1, 1)

    deadlines = [state.clocks.next_deadline()]
    late, _ = failure(state.expire(4.0))
    deadlines.append(state.clocks.next_deadline())

    assert late is impatient
    assert deadlines == [4.0, WAIT_TIMEOUT_S]


def test_a_trainer_alone_and_one_that_does_not_wait_are_answered_at_once() -> None:
    alone: list[Instruction] = []
    call = meet(state_of(1), 0, 1, 1, instructions=alone)
    not_waiting: list[Instruction] = []
    other = meet(state_of(2), 0, 1, 0, instructions=not_waiting)

    assert alone == [SendReply(call)]
    assert not_waiting == [SendReply(other)]


def test_the_slowest_is_another_trainer_or_none_when_all_have_ended() -> None:
    state = state_of(3)
    join(state, 1)
    join(state, 2)
    for trainer, reached in enumerate([9, 5, 7]):
        meet(state, trainer, reached, 0)

    slowest = [state.clocks.slowest_other(trainer, "step") for trainer in range(3)]
    state.complete(1, 101, 0.0)
    state.complete(2, 102, 0.0)

    assert slowest == [5, 7, 5]
    assert state.clocks.slowest_other(0, "step") == NO_OTHER


def replaced_and_begun(state: PserverState, trainer: int) -> int:
    """A new process takes the place of `trainer`; the time at which it begins."""
    assert state.job is not None
    state.hello(trainer, 900, state.job, 0.0)
    state.attend(trainer, 900, 0.0)
    meeting = Meeting("step", 0, 0, begins=True)
    state.meet(WaitingCall(trainer, 900, 0, 1000.0), meeting, 0.0)
    return state.clocks.begin(trainer, meeting)


def test_a_first_process_begins_at_0_however_far_the_others_are() -> None:
    state = state_of(2)
    meet(state, 0, 7, 0)
    join(state, 1)
    meeting = Meeting("step", 0, 0, begins=True)

    state.meet(call_of(1), meeting, 0.0)

    assert state.clocks.begin(1, meeting) == 0
    assert record_of(state)["reached"] == [7, 0]


def test_a_process_of_a_trainer_that_was_left_behind_begins_at_the_slowest_other() -> None:
    state = state_of(3)
    for trainer, reached in enumerate([90, 2, 70]):
        join(state, trainer)
        meet(state, trainer, reached, 0)

    begun = replaced_and_begun(state, 1)
    waits: list[Instruction] = []
    meet(state, 0, 91, 70, instructions=waits)

    assert begun == 70
    assert [type(instruction) for instruction in waits] == [SendReply]


@pytest.mark.parametrize(("other", "begin"), [(5, 5), (NO_OTHER, 0)])
def test_a_process_whose_predecessor_had_no_step_left_holds_no_other_up(
    other: int, begin: int
) -> None:
    state = state_of(2)
    join(state, 1)
    meet(state, 1, NO_OTHER, 0)
    meet(state, 0, other, 0)

    assert replaced_and_begun(state, 1) == begin
    assert record_of(state)["reached"] == [other, NO_OTHER]


def test_clocks_of_different_names_are_independent() -> None:
    state = state_of(2)
    join(state, 1)
    waits = meet(state, 0, 1, 1, clock="trained")
    meet(state, 1, 5, 0, clock="step")

    assert record_of(state, "trained") == {
        "clock": "trained",
        "reached": [1, 0],
        "waiting": [waits.trainer],
        "waiting_s": {waits.trainer: 0.0},
    }


def test_in_sync_a_trainer_lost_from_a_round_is_not_waited_for_on_a_clock() -> None:
    state = state_of(3, Sync("shrink"))
    join(state, 1)
    for trainer in (0, 1):
        state.exchange(WaitingCall(trainer, 100 + trainer, 1, 1000.0), 0.0)
    meet(state, 1, 1, 0, now=5.0)
    waits = meet(state, 0, 1, 1, now=5.0)

    instructions = state.expire(WAIT_TIMEOUT_S)  # the round goes on without trainer 2

    kinds = [type(instruction) for instruction in instructions]
    assert kinds == [Warn, Close, SendReply, Forget]
    assert instructions[2:] == [SendReply(waits), Forget(2)]


def test_in_sync_an_abort_of_the_job_ends_every_meeting_with_its_error() -> None:
    state = state_of(2, Sync("abort"))
    join(state, 1)
    state.exchange(WaitingCall(0, 100, 1, 1000.0), 0.0)
    waits = meet(state, 1, 1, 1, now=5.0)

    fails = [i for i in state.expire(WAIT_TIMEOUT_S) if isinstance(i, Fail)]

    assert [fail.error.code for fail in fails] == [ErrorCode.TRAINER_LOST] * 2
    assert fails[1].call is waits
    with pytest.raises(JobError, match="for trainer 1"):
        meet(state, 0, 1, 1, now=11.0)


def test_a_trainer_that_has_completed_may_not_meet() -> None:
    state = state_of(2)
    state.complete(0, 100, 0.0)

    with pytest.raises(JobError, match="called after its COMPLETE"):
        meet(state, 0, 1, 1)


@pytest.mark.parametrize("name", ["", "x" * 257])
def test_a_name_that_is_empty_or_too_long_is_refused(name: str) -> None:
    state = state_of(1)

    with pytest.raises(WireError, match="names have 1 to 256 letters"):
        meet(state, 0, 1, 0, clock=name)

    assert describe(state, 0.0)["clocks"] == []


def test_a_job_cannot_fill_the_memory_with_clocks() -> None:
    state = state_of(1)
    for number in range(MAX_CLOCKS):
        meet(state, 0, 1, 0, clock=f"epoch {number}")

    with pytest.raises(WireError, match="at most 1024 clocks"):
        meet(state, 0, 1, 0, clock="one more")

    meet(state, 0, 2, 0, clock="epoch 7")
