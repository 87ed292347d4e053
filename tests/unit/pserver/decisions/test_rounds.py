"""Rounds of two trainers in every order, and the named stories: loss, retry, deadline."""

from __future__ import annotations

from dataclasses import replace

import pytest

from psrt.core.errors import DeadlineError, JobError, WireError
from psrt.core.specs import Sync
from psrt.pserver.decisions.calls import Close, Fail, SendReply, WaitingCall
from psrt.pserver.decisions.job_identity import JobIdentity
from psrt.pserver.decisions.membership import Membership
from psrt.pserver.decisions.pserver_state import PserverState
from psrt.pserver.decisions.rounds import Rounds
from tests.support.round_world import WAIT_TIMEOUT_S, World, all_orders

CLOCK = -1  # a script of the clock, beside those of the trainers


def call_of(
    trainer: int, sequence: int = 1, deadline_s: float = 1000.0, round: int | None = None
) -> WaitingCall:
    return WaitingCall(trainer, 100 + trainer, sequence, deadline_s, round)


def rounds_of(trainers: int, policy: str = "wait") -> Rounds:
    members = Membership(trainers)
    for trainer in range(trainers):
        members.join(trainer, 100 + trainer, 0.0)
    return Rounds(members, policy, WAIT_TIMEOUT_S)


# --- every order -----------------------------------------------------------------------------


def test_in_every_order_each_round_takes_each_push_once_and_answers_all() -> None:
    scripts = {0: ["push", "push", "complete"], 1: ["push", "push", "complete"]}

    worlds = list(all_orders(scripts))

    assert len(worlds) == 8
    assert all(world.applied == [(0, (0, 1)), (1, (0, 1))] for world in worlds)
    assert not any(world.unanswered() or world.answered_twice() for world in worlds)
    assert not any(world.refused for world in worlds)


def test_in_every_order_duplicates_and_lost_replies_are_applied_once() -> None:
    scripts = {0: ["push", "retry", "push", "retry"], 1: ["push", "retry", "push"]}

    worlds = list(all_orders(scripts))

    assert len(worlds) > 100
    assert all(world.applied == [(0, (0, 1)), (1, (0, 1))] for world in worlds)
    assert all(
        set(world.outcomes_of(trainer)) == {"answered"} for world in worlds for trainer in (0, 1)
    )
    assert not any(world.unanswered() or world.answered_twice() for world in worlds)


def test_in_every_order_a_completed_trainer_lowers_the_round_for_the_other() -> None:
    scripts = {0: ["push", "complete"], 1: ["push", "push", "push", "complete"]}

    worlds = list(all_orders(scripts))

    assert all(world.applied == [(0, (0, 1)), (1, (1,)), (2, (1,))] for world in worlds)
    assert all(world.state.members.ended() for world in worlds)
    assert not any(world.unanswered() for world in worlds)


def test_in_every_order_a_deadline_hands_pushes_back_and_never_applies_them_twice() -> None:
    scripts = {0: ["push", "push"], 1: ["push", "retry"], CLOCK: ["expire"]}

    worlds = list(all_orders(scripts))

    outcomes = {outcome for world in worlds for t in (0, 1) for outcome in world.outcomes_of(t)}
    assert outcomes == {"answered", "DEADLINE"}
    assert not any(world.applied_twice() or world.answered_twice() for world in worlds)


def test_in_every_order_a_restart_under_wait_never_applies_both_processes() -> None:
    scripts = {0: ["push", "push"], 1: ["push", "restart", "push", "push"]}

    worlds = list(all_orders(scripts))

    assert not any(world.applied_twice() or world.answered_twice() for world in worlds)
    assert all(pushers == (0, 1) for world in worlds for _, pushers in world.applied)


def test_in_every_order_a_restart_under_abort_refuses_everything_after_it() -> None:
    scripts = {0: ["push", "push"], 1: ["push", "restart", "push"]}

    worlds = list(all_orders(scripts, policy="abort"))

    assert all(world.state.aborted is not None for world in worlds)
    assert not any(world.unanswered() or world.applied_twice() for world in worlds)
    assert all(world.outcomes_of(0)[-1] == "TRAINER_LOST" for world in worlds)


def test_in_every_order_loss_under_shrink_lets_the_rest_go_on() -> None:
    scripts = {0: ["push", "push"], 1: ["push"], CLOCK: ["expire", "expire"]}

    worlds = list(all_orders(scripts, policy="shrink"))

    assert {tuple(world.applied) for world in worlds} >= {
        ((0, (0, 1)), (1, (0,))),
        ((0, (0,)), (1, (0,))),
    }
    assert not any(world.applied_twice() or world.answered_twice() for world in worlds)


# --- named stories ---------------------------------------------------------------------------


def test_pushes_are_closed_in_trainer_order_whatever_the_order_of_arrival() -> None:
    rounds = rounds_of(3)
    late, early, middle = call_of(2), call_of(0), call_of(1)

    before = rounds.arrive(late, 0.0) + rounds.arrive(early, 0.0)
    closing = rounds.arrive(middle, 0.0)

    assert before == []
    assert closing == [Close(0, (early, middle, late))]


def test_a_retry_attaches_to_the_waiting_round_and_owns_the_push() -> None:
    rounds = rounds_of(2)
    first, retry, other = call_of(0), call_of(0), call_of(1)
    rounds.arrive(first, 0.0)
    rounds.arrive(retry, 1.0)

    closing = rounds.arrive(other, 2.0)
    answers = rounds.closed()

    assert closing == [Close(0, (retry, other))]
    assert answers == [SendReply(first, repeated=True), SendReply(retry), SendReply(other)]


def test_a_retry_that_arrives_while_the_round_is_applied_is_answered_with_it() -> None:
    rounds = rounds_of(2)
    rounds.arrive(call_of(0), 0.0)
    rounds.arrive(call_of(1), 0.0)
    retry = call_of(1)

    at_once = rounds.arrive(retry, 1.0)
    answers = rounds.closed()

    assert at_once == []
    assert SendReply(retry) in answers


def test_a_retry_after_a_lost_reply_is_answered_at_once() -> None:
    rounds = rounds_of(1)
    rounds.arrive(call_of(0), 0.0)
    rounds.closed()
    retry = call_of(0)

    instructions = rounds.arrive(retry, 1.0)

    assert instructions == [SendReply(retry, repeated=True)]
    assert rounds.open == 1


def test_the_deadline_names_the_missing_trainer_and_the_time_waited() -> None:
    world = World(policy="wait")
    world.do("push", 0)
    call = world.last_call[0]

    instructions = world.state.expire(12.5)

    fail = instructions[0]
    assert isinstance(fail, Fail)
    assert fail.call is call
    assert isinstance(fail.error, DeadlineError)
    assert "round 0 waited 12.5 s for trainer 1 (last call 12.5 s ago)" in fail.error.message


def test_the_deadline_says_that_a_trainer_was_never_seen() -> None:
    state = PserverState(WAIT_TIMEOUT_S)
    state.hello(0, 100, JobIdentity("job", "plan", 2, Sync("abort")), 0.0)
    state.exchange(call_of(0), 0.0)

    fail = state.expire(WAIT_TIMEOUT_S)[0]

    assert isinstance(fail, Fail)
    assert "trainer 1 (never seen)" in fail.error.message


def test_a_call_whose_own_deadline_ends_takes_its_push_with_it() -> None:
    rounds = rounds_of(2)
    impatient = call_of(0, deadline_s=1.0)
    rounds.arrive(impatient, 0.0)

    failed = rounds.expire(1.0)
    closing = rounds.arrive(call_of(1), 2.0)

    assert [type(instruction) for instruction in failed] == [Fail]
    assert closing == []
    assert rounds.missing() == [0]


def test_an_older_call_that_gives_up_leaves_the_retry_in_the_round() -> None:
    rounds = rounds_of(2)
    older, retry = call_of(0, deadline_s=1.0), call_of(0, deadline_s=5.0)
    rounds.arrive(older, 0.0)
    rounds.arrive(retry, 0.5)

    failed = rounds.expire(1.0)

    assert [fail.call for fail in failed if isinstance(fail, Fail)] == [older]
    assert rounds.waiting() == [0]
    assert rounds.next_deadline() == 5.0


def test_after_a_deadline_under_wait_the_same_pushes_can_close_the_round() -> None:
    world = World(policy="wait")
    world.do("push", 0)
    world.do("expire")

    world.do("retry", 0)
    world.do("push", 1)
    world.do("apply")

    assert world.applied == [(0, (0, 1))]
    assert world.outcomes_of(0) == ["DEADLINE", "answered"]


def test_under_shrink_a_late_trainer_is_told_and_a_new_process_joins_the_open_round() -> None:
    world = World(policy="shrink")
    world.do("push", 0)
    world.do("expire")
    world.do("apply")

    world.do("push", 1)
    world.do("restart", 1)
    world.do("push", 1)
    world.do("push", 0)
    world.do("apply")

    assert world.outcomes_of(1) == ["TRAINER_LOST", "answered"]
    assert world.applied == [(0, (0,)), (1, (0, 1))]


def test_under_abort_waiting_trainers_hear_who_was_lost() -> None:
    world = World(policy="abort")
    world.do("push", 0)

    world.do("expire")
    world.do("push", 0)

    assert world.outcomes_of(0) == ["TRAINER_LOST", "TRAINER_LOST"]
    assert "trainer 1" in str(world.state.aborted)


def test_a_push_for_a_round_that_is_not_open_yet_names_both_rounds() -> None:
    rounds = rounds_of(2)

    with pytest.raises(WireError, match="pushed for round 3, but round 0 is open"):
        rounds.arrive(call_of(0, round=3), 0.0)


def test_a_second_push_of_a_trainer_in_one_round_is_refused() -> None:
    rounds = rounds_of(2)
    rounds.arrive(call_of(0, sequence=1), 0.0)

    with pytest.raises(WireError, match="sent push 2 while its push 1 waits in round 0"):
        rounds.arrive(call_of(0, sequence=2), 0.0)


def test_a_new_process_that_pushes_while_its_round_is_applied_is_told_to_try_again() -> None:
    world = World(policy="wait")
    world.do("push", 0)
    world.do("push", 1)
    world.do("restart", 1)
    world.do("push", 1)
    world.do("apply")

    world.do("retry", 1)
    world.do("push", 0)
    world.do("apply")

    assert world.outcomes_of(1) == ["answered", "UNAVAILABLE", "answered"]
    assert world.applied == [(0, (0, 1)), (1, (0, 1))]


def test_a_process_that_was_replaced_is_refused_even_if_it_says_hello_again() -> None:
    world = World(policy="wait")
    world.do("restart", 1)

    with pytest.raises(JobError, match="another process has joined as trainer 1"):
        world.state.hello(1, 101, world.job, 0.0)


def test_a_new_process_takes_the_place_of_the_push_of_the_former_one() -> None:
    world = World(policy="wait")
    world.do("push", 1)
    world.do("restart", 1)
    world.do("push", 0)

    closed_with_the_dead_push = world.closing is not None
    world.do("push", 1)
    world.do("apply")

    assert not closed_with_the_dead_push
    assert world.applied == [(0, (0, 1))]
    assert world.outcomes_of(1) == ["TRAINER_LOST", "answered"]


@pytest.mark.parametrize(
    ("sums", "words"),
    [(True, "trainer 1 pushed for the sum"), (False, "trainer 1 pushed for the mean")],
)
def test_a_push_for_the_sum_and_one_for_the_mean_share_no_round(sums: bool, words: str) -> None:
    rounds = rounds_of(3)
    rounds.arrive(replace(call_of(2), sums=None), 0.0)  # has no gradient: it takes no side
    rounds.arrive(replace(call_of(0), sums=not sums), 0.0)

    with pytest.raises(WireError, match=words) as refused:
        rounds.arrive(replace(call_of(1), sums=sums), 0.0)
    closing = rounds.arrive(replace(call_of(1), sums=not sums), 0.0)

    assert "same reduce" in (refused.value.hint or "")
    assert [type(each) for each in closing] == [Close]
