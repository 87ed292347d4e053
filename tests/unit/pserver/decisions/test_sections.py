"""Rounds of several sections of one pserver: independent, but for what concerns trainers."""

from __future__ import annotations

import itertools

import pytest

from psrt.core.errors import ErrorCode, InternalError
from psrt.core.specs import Sync
from psrt.pserver.decisions.calls import Close, Fail, Instruction, SendReply, WaitingCall
from psrt.pserver.decisions.pserver_state import JobIdentity, PserverState

WAIT_S = 10.0


class TwoSections:
    """A machine with trainers 0 and 1, told of calls by (trainer, section)."""

    def __init__(self, policy: str = "wait") -> None:
        self.machine = PserverState(WAIT_S)
        self.job = JobIdentity("job", "plan", 2, Sync(policy))
        self._sequence = itertools.count(1)
        for trainer in (0, 1):
            self.machine.hello(trainer, 100 + trainer, self.job, 0.0)

    def push(self, trainer: int, section: int, round: int | None = None) -> list[Instruction]:
        call = WaitingCall(
            *(trainer, 100 + trainer, next(self._sequence), 1000.0),
            round=round,
            section=section,
        )
        return self._checked(self.machine.exchange(call, 0.0))

    def push_all(self) -> None:
        """Both trainers push for both sections, so that both rounds close."""
        for section in (0, 1):
            self.push(0, section)
            self.push(1, section)

    def closed(self, section: int) -> list[Instruction]:
        return self._checked(self.machine.closed(section))

    def expire(self, now: float) -> list[Instruction]:
        return self._checked(self.machine.expire(now))

    @property
    def open(self) -> dict[int, int]:
        assert self.machine.rounds is not None
        return dict(self.machine.rounds.opens())

    def _checked(self, instructions: list[Instruction]) -> list[Instruction]:
        assert self.machine.rounds is not None
        self.machine.rounds.check()
        return instructions


def closes(instructions: list[Instruction]) -> list[tuple[int, int, tuple[int, ...]]]:
    """(section, round, trainers) of every round that closes."""
    return [
        (each.section, each.round, tuple(call.trainer for call in each.pushes))
        for each in instructions
        if isinstance(each, Close)
    ]


def ended(instructions: list[Instruction], kind: type[Instruction]) -> list[tuple[int, int]]:
    """(trainer, section) of the calls that were answered, or failed."""
    return [
        (each.call.trainer, each.call.section)
        for each in instructions
        if isinstance(each, SendReply | Fail) and isinstance(each, kind)
    ]


def test_each_section_closes_when_all_trainers_have_pushed_for_it() -> None:
    world = TwoSections()

    assert world.push(0, section=0) == []
    assert world.push(0, section=1) == []
    assert closes(world.push(1, section=1)) == [(1, 0, (0, 1))]
    assert closes(world.push(1, section=0)) == [(0, 0, (0, 1))]

    assert ended(world.closed(1), SendReply) == [(0, 1), (1, 1)]
    assert ended(world.closed(0), SendReply) == [(0, 0), (1, 0)]
    assert world.open == {0: 1, 1: 1}


def test_a_section_goes_on_while_another_is_being_applied() -> None:
    world = TwoSections()
    world.push_all()

    world.closed(0)
    world.push(0, section=0, round=1)

    assert closes(world.push(1, section=0, round=1)) == [(0, 1, (0, 1))]
    assert world.open == {0: 1, 1: 0}


def test_a_trainer_that_completes_lowers_the_rounds_of_all_sections() -> None:
    world = TwoSections()
    world.push(0, section=0)
    world.push(0, section=1)

    instructions = world.machine.complete(1, 101, 0.0)

    assert closes(instructions) == [(0, 0, (0,)), (1, 0, (0,))]


def test_what_one_section_decides_about_a_lost_trainer_counts_for_all() -> None:
    world = TwoSections("shrink")
    world.push(0, section=1)
    world.machine.exchange(WaitingCall(0, 100, 99, 1000.0), 1.0)  # section 0, a second later

    instructions = world.expire(WAIT_S)

    assert sorted(closes(instructions)) == [(0, 0, (0,)), (1, 0, (0,))]


def test_a_job_that_one_section_ends_is_over_for_all_and_one_story_is_told() -> None:
    world = TwoSections("abort")
    world.push(0, section=0)
    world.push(0, section=1)

    instructions = world.expire(WAIT_S)

    assert sorted(ended(instructions, Fail)) == [(0, 0), (0, 1)]
    stories = {each.error.message for each in instructions if isinstance(each, Fail)}
    assert len(stories) == 1
    assert "trainer 1" in stories.pop()


def test_a_process_that_takes_a_place_under_abort_ends_the_job_in_all_sections() -> None:
    world = TwoSections("abort")
    world.push(0, section=0)
    world.push(1, section=1)

    instructions = world.machine.hello(1, 555, world.job, 1.0)

    assert sorted(ended(instructions, Fail)) == [(0, 0), (1, 1)]
    assert world.machine.aborted is not None
    assert world.machine.aborted.code is ErrorCode.TRAINER_LOST


def test_a_process_that_takes_a_place_pushes_again_where_its_former_self_has_not() -> None:
    world = TwoSections("wait")
    for section in (0, 1):
        world.push(0, section)
    world.push(1, section=0)
    world.closed(0)

    world.machine.hello(1, 555, world.job, 1.0)
    call = WaitingCall(1, 555, 1, 1000.0, round=0, section=1)

    assert closes(world.machine.exchange(call, 1.0)) == [(1, 0, (0, 1))]
    assert world.open == {0: 1, 1: 0}


def test_an_update_that_failed_ends_the_job_but_lets_the_other_section_finish() -> None:
    world = TwoSections()
    world.push_all()

    instructions = world.machine.abort(InternalError("the update failed"), closing=0)

    assert ended(instructions, Fail) == [(0, 0), (1, 0)]
    assert ended(world.machine.closed(1), SendReply) == [(0, 1), (1, 1)]


def test_the_earliest_of_all_deadlines_is_looked_at() -> None:
    world = TwoSections()
    world.machine.exchange(WaitingCall(0, 100, 1, 1000.0, section=1), 3.0)
    world.machine.exchange(WaitingCall(0, 100, 2, 5.0), 4.0)

    assert world.machine.rounds is not None
    assert world.machine.rounds.next_deadline() == 5.0


@pytest.mark.parametrize("order", list(itertools.permutations([(0, 0), (0, 1), (1, 0), (1, 1)])))
def test_in_every_order_each_section_takes_each_push_once(order: tuple[tuple[int, int]]) -> None:
    world, applied = TwoSections(), []
    for trainer, section in order:
        for close in closes(world.push(trainer, section)):
            applied.append(close)
            assert len(ended(world.closed(close[0]), SendReply)) == 2

    assert sorted(applied) == [(0, 0, (0, 1)), (1, 0, (0, 1))]
    assert world.open == {0: 1, 1: 1}
