"""A cut of one pserver: trainers in every order, and those that are late, leave or come back."""

from __future__ import annotations

import itertools

import pytest

from psrt.core.errors import ErrorCode, JobError
from psrt.core.specs import Sync
from psrt.pserver.decisions.calls import Close, Fail, Freeze, NoPart, SendReply, WaitingCall
from psrt.pserver.decisions.cuts import Cuts, given_up
from psrt.pserver.decisions.job_identity import JobIdentity
from psrt.pserver.decisions.membership import Membership
from psrt.pserver.decisions.pserver_state import PserverState

WAIT_S = 5.0


def members_of(trainers: int) -> Membership:
    members = Membership(trainers)
    for trainer in range(trainers):
        members.join(trainer, 100 + trainer, 0.0)
    return members


def call_of(trainer: int, position: str = "") -> WaitingCall:
    return WaitingCall(trainer, 100 + trainer, 0, 1000.0, content=position)


def codes(instructions: list) -> list[ErrorCode]:
    return [each.error.code for each in instructions if isinstance(each, Fail)]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_tables_freeze_when_the_last_running_trainer_takes_part(order: tuple[int, ...]) -> None:
    cuts = Cuts(members_of(3), WAIT_S)
    calls = {trainer: call_of(trainer) for trainer in order}

    for trainer in order[:-1]:
        assert cuts.arrive(calls[trainer], 1, 0.0) == []
        cuts.check()
    (freeze,) = cuts.arrive(calls[order[-1]], 1, 0.0)
    cuts.check()

    assert freeze == Freeze(1, (calls[0], calls[1], calls[2]))
    assert {each.call for each in cuts.frozen()} == set(calls.values())
    cuts.check()


def test_a_repeated_call_waits_too_and_the_newest_position_counts() -> None:
    cuts = Cuts(members_of(2), WAIT_S)
    first, again, other = call_of(0, "a"), call_of(0, "a"), call_of(1, "b")
    cuts.arrive(first, 1, 0.0)
    cuts.arrive(again, 1, 0.0)

    (freeze,) = cuts.arrive(other, 1, 0.0)

    assert freeze.calls == (again, other)
    assert {each.call for each in cuts.frozen()} == {first, again, other}


def test_a_call_of_a_frozen_cut_is_answered_again() -> None:
    cuts = Cuts(members_of(1), WAIT_S)
    cuts.arrive(call_of(0), 1, 0.0)
    cuts.frozen()

    late = call_of(0)

    assert cuts.arrive(late, 1, 9.0) == [SendReply(late, repeated=True)]


def test_a_cut_is_given_up_when_a_trainer_does_not_take_part_in_time() -> None:
    cuts = Cuts(members_of(2), WAIT_S)
    waiting = call_of(0)
    cuts.arrive(waiting, 1, 10.0)

    assert cuts.next_deadline() == 10.0 + WAIT_S
    assert cuts.expire(14.9) == []
    failed, no_part = cuts.expire(15.0)

    assert no_part.number == 1
    assert no_part.why.startswith("it waited for trainer 1")
    assert failed.call is waiting
    assert failed.error.code is ErrorCode.CUT_GIVEN_UP
    assert "it waited for trainer 1" in failed.error.message
    assert codes(cuts.arrive(call_of(1), 1, 15.1)) == [ErrorCode.CUT_GIVEN_UP]
    cuts.check()


def test_nobody_waits_in_a_cut_that_was_refused() -> None:
    cuts, early = Cuts(members_of(2), WAIT_S), call_of(0)
    assert cuts.refuse(1, "a script cannot follow") == []
    assert codes(cuts.arrive(call_of(1), 1, 0.0)) == [ErrorCode.CUT_GIVEN_UP]
    cuts.check()

    cuts.arrive(early, 2, 0.0)
    failed, no_part = cuts.refuse(2, "a script cannot follow")
    assert (failed.call, no_part.number) == (early, 2)
    assert cuts.next_deadline() is None


def test_a_cut_that_is_open_goes_on_when_an_older_one_is_refused() -> None:
    cuts = Cuts(members_of(2), WAIT_S)
    cuts.arrive(call_of(0), 3, 0.0)

    assert cuts.refuse(2, "the pserver was started again") == []
    assert isinstance(cuts.arrive(call_of(1), 3, 0.0)[0], Freeze)
    cuts.check()


def test_the_text_of_an_error_is_the_reason_of_a_cut_that_was_given_up() -> None:
    error = given_up(3, "b:1: the disk is full.")

    assert error.message.startswith("cut 3 was given up: b:1: the disk is full. Nothing of it")


def test_a_newer_cut_ends_an_older_one() -> None:
    cuts = Cuts(members_of(2), WAIT_S)
    old = call_of(0)
    cuts.arrive(old, 1, 0.0)

    failed, no_part = cuts.arrive(call_of(1), 2, 1.0)

    assert failed.call is old
    assert no_part == NoPart(1, "a newer one was proposed")
    assert cuts.number == 2
    cuts.check()


def test_trainers_that_completed_or_were_lost_are_not_awaited() -> None:
    members = members_of(3)
    cuts = Cuts(members, WAIT_S)
    waiting = call_of(0)
    cuts.arrive(waiting, 1, 0.0)

    members.complete(1, 0.0)
    assert cuts.freeze_if_complete() == []
    members.lose([2])

    assert cuts.freeze_if_complete() == [Freeze(1, (waiting,))]


def test_a_trainer_that_was_never_seen_is_not_awaited() -> None:
    members = Membership(2)
    members.join(0, 100, 0.0)
    call = call_of(0)

    assert Cuts(members, WAIT_S).arrive(call, 1, 0.0) == [Freeze(1, (call,))]


def test_the_call_of_a_process_that_was_replaced_fails_and_the_new_one_is_awaited() -> None:
    cuts = Cuts(members_of(3), WAIT_S)
    cuts.arrive(call_of(0), 1, 0.0)
    cuts.arrive(call_of(1), 1, 1.0)
    assert codes(cuts.replaced(0)) == [ErrorCode.CUT_GIVEN_UP]
    cuts.check()
    assert cuts.next_deadline() == WAIT_S
    cuts.arrive(call_of(2), 1, 2.0)
    (freeze,) = cuts.arrive(call_of(0), 1, 2.0)

    assert [call.trainer for call in freeze.calls] == [0, 1, 2]


def test_a_cut_ends_when_its_only_call_was_of_a_process_that_was_replaced() -> None:
    cuts = Cuts(members_of(2), WAIT_S)
    cuts.arrive(call_of(0), 1, 0.0)

    failed, no_part = cuts.replaced(0)
    cuts.check()

    assert failed.error.code is ErrorCode.CUT_GIVEN_UP
    assert no_part == NoPart(1, "the only trainer that took part, 0, has ended")
    assert cuts.next_deadline() is None


def test_a_freeze_under_way_is_not_ended_by_time_or_by_a_new_process() -> None:
    cuts = Cuts(members_of(1), WAIT_S)
    cuts.arrive(call_of(0), 1, 0.0)

    assert cuts.expire(100.0) == []
    assert cuts.replaced(0) == []
    assert cuts.abort(JobError("the job ended")) == []
    assert cuts.next_deadline() is None
    assert len(cuts.frozen()) == 1


def push_of(trainer: int, sequence: int) -> WaitingCall:
    return WaitingCall(trainer, 100 + trainer, sequence, 1000.0)


def test_a_trainer_that_pushes_again_ends_the_cut_it_waited_for() -> None:
    cuts = Cuts(members_of(2), WAIT_S)
    cuts.pushed(push_of(0, 3))
    cuts.arrive(WaitingCall(0, 100, 3, 1000.0), 1, 0.0)

    assert cuts.pushed(push_of(0, 3)) == []  # a repeated one belongs to the cut
    assert codes(cuts.pushed(push_of(0, 4))) == [ErrorCode.CUT_GIVEN_UP]
    assert codes(cuts.arrive(call_of(1), 1, 1.0)) == [ErrorCode.CUT_GIVEN_UP]


def test_a_cut_call_that_arrives_behind_a_later_push_fails() -> None:
    cuts = Cuts(members_of(1), WAIT_S)
    cuts.pushed(push_of(0, 4))

    late = WaitingCall(0, 100, 3, 1000.0)

    assert codes(cuts.arrive(late, 1, 0.0)) == [ErrorCode.CUT_GIVEN_UP]


def test_a_cut_ends_with_the_deadline_of_its_first_call() -> None:
    cuts = Cuts(members_of(2), WAIT_S)
    cuts.arrive(WaitingCall(0, 100, 0, 2.0), 1, 0.0)

    assert cuts.next_deadline() == 2.0
    assert codes(cuts.expire(2.0)) == [ErrorCode.CUT_GIVEN_UP]


def test_a_freeze_that_failed_ends_the_cut() -> None:
    cuts = Cuts(members_of(1), WAIT_S)
    cuts.arrive(call_of(0), 1, 0.0)

    ended = cuts.give_up("no memory")

    assert codes(ended) == [ErrorCode.CUT_GIVEN_UP]
    assert ended[-1] == NoPart(1, "no memory")
    assert cuts.give_up("no memory") == []
    assert codes(cuts.arrive(call_of(0), 1, 1.0)) == [ErrorCode.CUT_GIVEN_UP]
    cuts.check()


def test_after_the_last_push_tables_freeze_without_calls() -> None:
    members = members_of(2)
    cuts = Cuts(members, WAIT_S)
    for trainer in range(2):
        members.complete(trainer, 0.0, position=f"at {trainer}")

    assert cuts.freeze_without_calls(3) == [Freeze(3, ())]
    assert cuts.frozen() == []
    cuts.check()

    assert cuts.frozen_number == 3
    assert cuts.freeze_without_calls(3) == []


def test_a_call_that_waits_fails_when_tables_freeze_without_it() -> None:
    members = members_of(2)
    cuts = Cuts(members, WAIT_S)
    cuts.arrive(call_of(0), 1, 0.0)
    assert cuts.freeze_without_calls(2) == []  # trainers run
    for trainer in range(2):
        members.complete(trainer, 0.0)

    failed, no_part, freeze = cuts.freeze_without_calls(2)

    assert codes([failed]) == [ErrorCode.CUT_GIVEN_UP]
    assert no_part == NoPart(1, "the job has ended")
    assert freeze == Freeze(2, ())
    cuts.check()


@pytest.mark.parametrize("cut_first", [True, False])
def test_a_cut_ends_if_a_trainer_waits_in_a_round_for_one_that_takes_part(cut_first: bool) -> None:
    """One has not met the announcement: it waits for the push of the other, which waits for it."""
    state = PserverState(WAIT_S)
    for trainer in (0, 1):
        state.hello(trainer, 100 + trainer, JobIdentity("job", "plan", 2, Sync()), 0.0)
        state.attend(trainer, 100 + trainer, 0.0)
    takes_part, pushes = call_of(0), push_of(1, 1)
    events = [lambda: state.cut(takes_part, 3, 0.0), lambda: state.exchange(pushes, 0.0)]

    first, second = events if cut_first else reversed(events)
    assert first() == []
    failed, no_part = second()

    assert isinstance(failed, Fail)
    assert (failed.call, failed.error.code) == (takes_part, ErrorCode.CUT_GIVEN_UP)
    assert no_part == NoPart(3, "trainer 1 trains on without it")
    last = push_of(0, 1)
    assert state.exchange(last, 0.0) == [Close(0, (last, pushes))]
