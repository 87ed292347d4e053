"""A change of the number of trainers on one pserver: every order of calls, and every end."""

from __future__ import annotations

import itertools

import pytest

from psrt.core.errors import ErrorCode, JobError, PsrtError, UnavailableError, WireError
from psrt.core.specs import Async, Sync
from psrt.pserver.decisions import Fail, Freeze, JobIdentity, Meeting, NoPart, SendReply
from psrt.pserver.decisions.calls import Close, WaitingCall
from psrt.pserver.decisions.member import MemberState
from psrt.pserver.decisions.pserver_state import PserverState

PSERVERS = {"a:1": 9}


def job_of(trainers: int, mode: object = None) -> JobIdentity:
    return JobIdentity("clicks", "plan", trainers, mode or Sync())


def state_of(trainers: int, mode: object = None) -> PserverState:
    """A pserver with running trainers 0 … T-1, whose processes are 100, 101, …."""
    state = PserverState(5.0, trainers)
    state.resizing.allow()
    join(state, job_of(trainers, mode), 100)
    return state


def join(state: PserverState, job: JobIdentity, first: int) -> None:
    for trainer in range(job.trainers):
        state.hello(trainer, first + trainer, job, 0.0)
        state.attend(trainer, first + trainer, 0.0)


def call_of(trainer: int, incarnation: int, sequence: int = 9) -> WaitingCall:
    return WaitingCall(trainer, incarnation, sequence, 1000.0)


def frozen_for(state: PserverState, number: int, trainers: int) -> list[WaitingCall]:
    """The calls of all trainers, which wait for the end of a cut that changes their number."""
    calls = [call_of(m.trainer, m.incarnation) for m in state.members.members]
    for call in calls[:-1]:
        assert state.cut(call, number, 0.0, trainers) == []
    (freeze,) = state.cut(calls[-1], number, 0.0, trainers)
    assert isinstance(freeze, Freeze)
    assert state.frozen() == []
    state.cuts.check()
    return calls


def replied(instructions: list) -> set[WaitingCall]:
    return {each.call for each in instructions if isinstance(each, SendReply)}


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("trainers", [1, 2, 4, 5])
def test_the_job_begins_anew_when_the_cut_is_complete(
    order: tuple[int, ...], trainers: int
) -> None:
    state = state_of(3)
    calls = {trainer: call_of(trainer, 100 + trainer) for trainer in order}
    for trainer in order[:-1]:
        assert state.cut(calls[trainer], 7, 0.0, trainers) == []
    state.cut(calls[order[-1]], 7, 0.0, trainers)
    assert state.frozen() == []

    assert replied(state.resized()) == set(calls.values())

    assert state.job == job_of(trainers)
    assert [m.state for m in state.members.members] == [MemberState.UNSEEN] * trainers
    assert (state.cuts.number, state.cuts.frozen_number) == (7, 7)
    join(state, job_of(trainers), 200)
    assert len(state.members.running()) == trainers


def test_rounds_and_mini_batches_count_on() -> None:
    state = state_of(2)
    for trainer in range(2):
        instructions = state.exchange(call_of(trainer, 100 + trainer, 1), 0.0)
    assert isinstance(instructions[0], Close)
    state.closed()
    frozen_for(state, 1, 1)
    state.resized()
    assert state.open_round == 1

    pushing = state_of(2, Async())
    pushing.push(call_of(0, 100, 1), 3, 0.0)
    pushing.applied(next(iter(pushing.pushes._applying.values()))[0])
    frozen_for(pushing, 1, 3)
    pushing.resized()
    assert pushing.global_step == 3


def test_calls_are_refused_while_the_end_of_the_cut_is_unknown_and_tried_again() -> None:
    refused = [
        lambda state: state.push(call_of(0, 100, 5), 1, 0.0),
        lambda state: state.complete(0, 100, 0.0),
        lambda state: state.hello(0, 300, job_of(2, Async()), 0.0),
        lambda state: state.attend(0, 100, 0.0),
    ]
    for call in refused:
        state = state_of(2, Async())
        frozen_for(state, 1, 3)
        with pytest.raises(UnavailableError) as found:
            call(state)
        assert found.value.code is ErrorCode.RESIZING
        assert found.value.spec.retryable
    in_sync = state_of(2)
    frozen_for(in_sync, 1, 3)
    with pytest.raises(UnavailableError, match="about to go on with 3 trainers"):
        in_sync.exchange(call_of(0, 100, 5), 0.0)


def test_former_processes_are_refused_by_name_over_any_number_of_changes() -> None:
    state = state_of(3, Async())
    state.hello(1, 151, job_of(3, Async()), 0.0)  # introduced, has taken no place
    for number, (trainers, first) in enumerate([(1, 200), (3, 300)], 1):
        frozen_for(state, number, trainers)
        state.resized()
        join(state, job_of(trainers, Async()), first)

    former = [(0, 100), (1, 101), (1, 151), (2, 102), (0, 200)]
    for trainer, incarnation in former:
        with pytest.raises(JobError, match="goes on with 3 trainers"):
            state.push(call_of(trainer, incarnation), 1, 0.0)
        with pytest.raises(JobError, match="goes on with 3 trainers"):
            state.pull(trainer, incarnation, 0.0, False)
        with pytest.raises(JobError, match="goes on with 3 trainers"):
            state.hello(trainer, incarnation, job_of(3, Async()), 0.0)
        with pytest.raises(JobError, match="goes on with 3 trainers"):
            state.attend(trainer, incarnation, 0.0)


def test_a_trainer_that_was_dropped_does_not_exist() -> None:
    state = state_of(2, Async())
    frozen_for(state, 1, 1)
    state.resized()

    with pytest.raises(WireError, match="trainers 0 to 0"):
        state.push(call_of(1, 101, 9), 1, 0.0)


def test_a_repeated_cut_is_answered_like_the_first() -> None:
    state = state_of(2)
    calls, again = frozen_for(state, 4, 3), call_of(0, 100)
    assert state.cut(again, 4, 0.0, 3) == []
    assert replied(state.resized()) == {*calls, again}
    late = call_of(0, 100)
    assert state.cut(late, 4, 0.0, 3) == [SendReply(late, repeated=True)]

    given_up = state_of(2)
    frozen_for(given_up, 4, 3)
    given_up.not_resized("the disk is full")
    (failed,) = given_up.cut(call_of(0, 100), 4, 0.0, 3)
    assert failed.error.code is ErrorCode.CUT_GIVEN_UP


@pytest.mark.parametrize("trainers", [1, 3])
def test_a_process_whose_reply_was_lost_may_repeat_its_cut_over_a_new_connection(
    trainers: int,
) -> None:
    """A connection begins with HELLO, by which it still names the former number."""
    state = state_of(2)
    frozen_for(state, 4, trainers)
    assert state.hello(1, 101, job_of(2), 0.0) == []

    state.resized()

    assert state.hello(1, 101, job_of(2), 0.0) == []
    assert state.members.held_by(1, 101) == 0
    again = call_of(1, 101)
    assert state.cut(again, 4, 0.0, trainers) == [SendReply(again, repeated=True)]
    with pytest.raises(UnavailableError):
        state.hello(1, 555, job_of(2), 0.0)
    with pytest.raises(PsrtError):
        state.attend(1, 101, 0.0)


def test_trainers_go_on_after_a_cut_that_was_given_up() -> None:
    state = state_of(2, Async())
    calls = frozen_for(state, 4, 3)

    failed = state.not_resized("b:1 has no memory")

    assert {each.call for each in failed} == set(calls)
    assert {each.error.code for each in failed} == {ErrorCode.CUT_GIVEN_UP}
    assert "b:1 has no memory" in failed[0].error.message
    assert state.push(call_of(0, 100, 1), 1, 0.0)
    assert state.job == job_of(2, Async())
    frozen_for(state, 5, 3)
    assert replied(state.resized())


def test_the_job_ends_if_the_end_of_the_cut_is_unknown() -> None:
    state = state_of(2, Async())
    calls = frozen_for(state, 4, 3)

    failed = state.resize_unknown()

    assert {each.call for each in failed} == set(calls)
    with pytest.raises(PsrtError, match="unknown whether cut 4"):
        state.push(call_of(0, 100, 1), 1, 0.0)


def test_an_abort_ends_the_wait() -> None:
    state = state_of(2)
    calls = frozen_for(state, 4, 3)

    assert {each.call for each in state.abort(JobError("the disk is gone"))} == set(calls)


def test_waits_on_clocks_end_when_the_number_changes() -> None:
    state = state_of(2, Async())
    meets = call_of(0, 100)
    state.meet(meets, Meeting("step", 4, 9), 0.0)
    frozen_for(state, 1, 3)

    failed = [each for each in state.resized() if isinstance(each, Fail)]

    assert [each.call for each in failed] == [meets]


@pytest.mark.parametrize("first", [0, 3])
def test_a_trainer_that_takes_part_without_the_number_ends_the_cut(first: int) -> None:
    state = state_of(2)
    one = call_of(0, 100)
    state.cut(one, 1, 0.0, first)

    ended = state.cut(call_of(1, 101), 1, 0.0, 3 - first)

    assert isinstance(ended[-1], NoPart)
    assert "trainer 1 does not take part in a change" in ended[-1].why
    assert state.cuts.frozen_number == 0
    state.cuts.check()


@pytest.mark.parametrize("first", ["complete", "cut"])
def test_a_trainer_that_has_completed_ends_the_cut(first: str) -> None:
    state = state_of(2, Async())
    events = [lambda: state.complete(1, 101, 0.0), lambda: state.cut(call_of(0, 100), 1, 0.0, 3)]
    events = events if first == "complete" else events[::-1]

    instructions = [each for event in events for each in event()]

    assert [each.why for each in instructions if isinstance(each, NoPart)] == [
        "not all trainers run, which a change of their number needs"
    ]


def test_a_newcomer_with_another_number_waits_where_it_may_change() -> None:
    state = state_of(2)
    with pytest.raises(UnavailableError, match="has 2 trainers, and trainer 2 was started for 3"):
        state.hello(2, 300, job_of(3), 0.0)
    frozen_for(state, 1, 3)
    state.resized()
    assert state.hello(2, 300, job_of(3), 0.0) == []

    state.resizing.is_allowed = False
    with pytest.raises(WireError) as found:
        state.hello(0, 300, job_of(2), 0.0)
    assert found.value.code is ErrorCode.JOB_MISMATCH


def test_a_newcomer_of_another_job_is_refused_at_once() -> None:
    state = state_of(2)
    with pytest.raises(WireError, match="plan hash"):
        state.hello(2, 300, JobIdentity("clicks", "other", 3, Sync()), 0.0)
