"""The times of local cuts, and which of them are full."""

from __future__ import annotations

import pytest

from psrt.pserver.checkpoints.delta_schedule import LEAST_BYTES, LEAST_S, DeltaSchedule


def begun(every_s: float = 5.0) -> DeltaSchedule:
    schedule = DeltaSchedule(every_s)
    schedule.begin(100.0)
    return schedule


def test_the_first_one_is_due_at_once_and_others_after_each_period() -> None:
    schedule = begun()
    assert schedule.wait_s(100.0) == 0

    schedule.taken(100.0)

    assert schedule.wait_s(101.0) == 4.0
    assert schedule.wait_s(107.0) == 0


def test_one_that_is_asked_for_comes_soon_but_not_more_often_than_that() -> None:
    schedule = begun()
    schedule.taken(100.0)
    schedule.ask()
    assert schedule.wait_s(100.0) == pytest.approx(LEAST_S)
    assert schedule.wait_s(103.0) == 0

    schedule.taken(103.0)

    assert schedule.wait_s(103.0) == 5.0


def test_one_is_full_once_those_behind_the_last_full_one_have_more_bytes() -> None:
    schedule, size = begun(), 2 * LEAST_BYTES
    schedule.written(size, is_full=True)
    schedule.written(size, is_full=False)
    assert not schedule.needs_full

    schedule.written(1, is_full=False)
    assert schedule.needs_full

    schedule.written(size, is_full=True)
    assert not schedule.needs_full


def test_small_ones_and_those_in_a_complete_cut_need_no_full_one() -> None:
    schedule = begun()
    schedule.written(100, is_full=True)
    schedule.written(LEAST_BYTES, is_full=False)
    assert not schedule.needs_full

    schedule.written(1, is_full=False)
    schedule.replaced()
    assert not schedule.needs_full
