"""Turns of a Geo trainer's training thread and of a cut."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from psrt.communicator.geo.cut_turns import CutTurns
from psrt.core.errors import DeadlineError, ErrorCode, JobError
from tests.support.carriers import eventually

LONG_S = 30.0


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as made:
        yield made


def copy(turns: CutTurns, copied: list[str]) -> None:
    with turns.copying(LONG_S):
        copied.append("copied")


def test_a_copy_is_made_at_the_end_of_a_step(pool: ThreadPoolExecutor) -> None:
    turns, copied = CutTurns(), list[str]()
    cut = pool.submit(copy, turns, copied)
    eventually(lambda: turns._is_wanted, "a cut that wants a copy")
    assert copied == []

    turns.step_ended()

    cut.result(LONG_S)
    assert copied == ["copied"]


def test_a_trainer_that_waits_for_others_is_copied_meanwhile() -> None:
    turns, copied = CutTurns(), list[str]()
    turns.rest()

    copy(turns, copied)

    turns.work()
    assert copied == ["copied"]


def test_training_goes_on_only_after_the_copy(pool: ThreadPoolExecutor) -> None:
    turns = CutTurns()
    turns.rest()
    with turns.copying(LONG_S):
        working = pool.submit(turns.work)
        assert not working.done()
    working.result(LONG_S)
    assert not turns._is_resting


def test_no_exchange_starts_between_the_copy_and_the_end_of_the_freeze() -> None:
    turns = CutTurns()
    turns.rest()
    with turns.pushes_held():
        with turns.copying(LONG_S):
            pass
        with pytest.raises(DeadlineError, match="held the exchange of changes back"):
            turns.await_frozen(0.0)
    turns.await_frozen(0.0)


def test_a_step_that_does_not_end_in_time_keeps_its_trainer_out_of_the_cut() -> None:
    turns = CutTurns()
    with pytest.raises(DeadlineError, match="no step ended within"), turns.copying(0.0):
        raise AssertionError
    turns.step_ended()  # does not wait for a copy that nobody wants any more


def test_a_trainer_that_leaves_waits_for_its_cut_and_takes_part_in_no_other(
    pool: ThreadPoolExecutor,
) -> None:
    turns = CutTurns()
    with turns.taking_part():
        leaving = pool.submit(turns.end, LONG_S)
        eventually(lambda: turns._has_ended, "a trainer that leaves")
        assert not leaving.done()
    leaving.result(LONG_S)
    with pytest.raises(JobError) as found, turns.taking_part():
        raise AssertionError
    assert found.value.code is ErrorCode.CUT_GIVEN_UP


def test_a_cut_that_waits_for_a_step_ends_with_its_trainer(pool: ThreadPoolExecutor) -> None:
    turns = CutTurns()
    cut = pool.submit(copy, turns, [])
    eventually(lambda: turns._is_wanted, "a cut that wants a copy")

    turns.end()

    with pytest.raises(JobError, match="about to leave"):
        cut.result(LONG_S)
