"""Rounds of several buckets of one pserver: independent, except for the state of trainers."""

from __future__ import annotations

import itertools

import pytest

from psrt.core.errors import ErrorCode, InternalError
from psrt.core.specs import Sync
from psrt.pserver.decisions.calls import Close, Fail, Instruction, SendReply, WaitingCall
from psrt.pserver.decisions.job_identity import JobIdentity
from psrt.pserver.decisions.pserver_state import PserverState

WAIT_S = 10.0


class TwoSections:
    """A state with trainers 0 and 1, and calls by (trainer, bucket)."""

    def __init__(self, policy: str = "wait") -> None:
        self.state = PserverState(WAIT_S)
        self.job = JobIdentity("job", "plan", 2, Sync(policy))
        self._sequence = itertools.count(1)
        for trainer in (0, 1):
            self.state.hello(trainer, 100 + trainer, self.job, 0.0)

    def push(self, trainer: int, bucket: int, round: int | None = None) -> list[Instruction]:
        call = WaitingCall(
            *(trainer, 100 + trainer, next(self._sequence), 1000.0), round=round, bucket=bucket
        )
        return self._checked(self.state.exchange(call, 0.0))

    def push_all(self) -> None:
        """Both trainers push for both buckets, so that both rounds close."""
        for bucket in (0, 1):
            self.push(0, bucket)
            self.push(1, bucket)

    def replace(self, trainer: int) -> list[Instruction]:
        """A new process, 555, takes the place of `trainer`."""
        self.state.hello(trainer, 555, self.job, 1.0)
        return self.state.attend(trainer, 555, 1.0)

    def closed(self, bucket: int) -> list[Instruction]:
        return self._checked(self.state.closed(bucket))

    def expire(self, now: float) -> list[Instruction]:
        return self._checked(self.state.expire(now))

    @property
    def open(self) -> dict[int, int]:
        assert self.state.rounds is not None
        return dict(self.state.rounds.open_rounds())

    def _checked(self, instructions: list[Instruction]) -> list[Instruction]:
        assert self.state.rounds is not None
        self.state.rounds.check()
        return instructions


def closes(instructions: list[Instruction]) -> list[tuple[int, int, tuple[int, ...]]]:
    """(bucket, round, trainers) of every round that closes."""
    return [
        (each.bucket, each.round, tuple(call.trainer for call in each.pushes))
        for each in instructions
        if isinstance(each, Close)
    ]


def ended(instructions: list[Instruction], kind: type[Instruction]) -> list[tuple[int, int]]:
    """(trainer, bucket) of the calls that were answered, or failed."""
    return [
        (each.call.trainer, each.call.bucket)
        for each in instructions
        if isinstance(each, SendReply | Fail) and isinstance(each, kind)
    ]


def test_each_bucket_closes_when_all_trainers_have_pushed_for_it() -> None:
    world = TwoSections()

    assert world.push(0, bucket=0) == []
    assert world.push(0, bucket=1) == []
    assert closes(world.push(1, bucket=1)) == [(1, 0, (0, 1))]
    assert closes(world.push(1, bucket=0)) == [(0, 0, (0, 1))]

    assert ended(world.closed(1), SendReply) == [(0, 1), (1, 1)]
    assert ended(world.closed(0), SendReply) == [(0, 0), (1, 0)]
    assert world.open == {0: 1, 1: 1}


def test_a_bucket_goes_on_while_another_is_being_applied() -> None:
    world = TwoSections()
    world.push_all()

    world.closed(0)
    world.push(0, bucket=0, round=1)

    assert closes(world.push(1, bucket=0, round=1)) == [(0, 1, (0, 1))]
    assert world.open == {0: 1, 1: 0}


def test_a_trainer_that_completes_lowers_the_rounds_of_all_buckets() -> None:
    world = TwoSections()
    world.push(0, bucket=0)
    world.push(0, bucket=1)

    instructions = world.state.complete(1, 101, 0.0)

    assert closes(instructions) == [(0, 0, (0,)), (1, 0, (0,))]


def test_a_decision_of_one_bucket_about_a_lost_trainer_counts_for_all() -> None:
    world = TwoSections("shrink")
    world.push(0, bucket=1)
    world.state.exchange(WaitingCall(0, 100, 99, 1000.0), 1.0)  # bucket 0, a second later

    instructions = world.expire(WAIT_S)

    assert sorted(closes(instructions)) == [(0, 0, (0,)), (1, 0, (0,))]


def test_a_job_that_one_bucket_ends_is_over_for_all_with_one_error() -> None:
    world = TwoSections("abort")
    world.push(0, bucket=0)
    world.push(0, bucket=1)

    instructions = world.expire(WAIT_S)

    assert sorted(ended(instructions, Fail)) == [(0, 0), (0, 1)]
    stories = {each.error.message for each in instructions if isinstance(each, Fail)}
    assert len(stories) == 1
    assert "trainer 1" in stories.pop()


def test_a_process_that_takes_a_place_under_abort_ends_the_job_in_all_buckets() -> None:
    world = TwoSections("abort")
    world.push(0, bucket=0)
    world.push(1, bucket=1)

    instructions = world.replace(1)

    assert sorted(ended(instructions, Fail)) == [(0, 0), (1, 1)]
    assert world.state.aborted is not None
    assert world.state.aborted.code is ErrorCode.TRAINER_LOST


def test_a_process_that_takes_a_place_pushes_again_where_its_former_self_has_not() -> None:
    world = TwoSections("wait")
    for bucket in (0, 1):
        world.push(0, bucket)
    world.push(1, bucket=0)
    world.closed(0)

    world.replace(1)
    call = WaitingCall(1, 555, 1, 1000.0, round=0, bucket=1)

    assert closes(world.state.exchange(call, 1.0)) == [(1, 0, (0, 1))]
    assert world.open == {0: 1, 1: 0}


def test_an_update_that_failed_ends_the_job_but_lets_the_other_bucket_finish() -> None:
    world = TwoSections()
    world.push_all()

    instructions = world.state.abort(InternalError("the update failed"), closing=0)

    assert ended(instructions, Fail) == [(0, 0), (1, 0)]
    assert ended(world.state.closed(1), SendReply) == [(0, 1), (1, 1)]


def test_the_earliest_of_all_deadlines_counts() -> None:
    world = TwoSections()
    world.state.exchange(WaitingCall(0, 100, 1, 1000.0, bucket=1), 3.0)
    world.state.exchange(WaitingCall(0, 100, 2, 5.0), 4.0)

    assert world.state.rounds is not None
    assert world.state.rounds.next_deadline() == 5.0


@pytest.mark.parametrize("order", list(itertools.permutations([(0, 0), (0, 1), (1, 0), (1, 1)])))
def test_in_every_order_each_bucket_takes_each_push_once(order: tuple[tuple[int, int]]) -> None:
    world, applied = TwoSections(), []
    for trainer, bucket in order:
        for close in closes(world.push(trainer, bucket)):
            applied.append(close)
            assert len(ended(world.closed(close[0]), SendReply)) == 2

    assert sorted(applied) == [(0, 0, (0, 1)), (1, 0, (0, 1))]
    assert world.open == {0: 1, 1: 1}
