"""Exchanges of a Geo trainer, by enumeration of the steps at which answers arrive."""

from __future__ import annotations

import itertools

import pytest

from psrt.communicator.geo.sync_schedule import Due, SyncSchedule


def run(every: int, answered: tuple[bool, ...]) -> list[tuple[Due, int]]:
    """One decision per step, and the number of steps its push counts; `answered` marks the steps
    that find the exchange under way answered."""
    schedule, made = SyncSchedule(every), []
    for is_answered in answered:
        due = schedule.step(schedule.is_under_way and is_answered)
        if due.merge:
            schedule.merged()
        made.append((due, schedule.started() if due.start else 0))
    return made


@pytest.mark.parametrize("every", [1, 2, 3])
def test_however_late_answers_come_exchanges_start_every_so_many_steps(every: int) -> None:
    for answered in itertools.product((False, True), repeat=8):
        made = run(every, answered)

        starts = [number for number, (due, _) in enumerate(made, 1) if due.start]
        assert starts == list(range(every, 9, every))
        assert all(counted == every for due, counted in made if due.start)


@pytest.mark.parametrize("every", [1, 2, 3])
def test_an_answer_is_merged_once_at_the_first_step_it_is_there_and_before_the_next_start(
    every: int,
) -> None:
    for answered in itertools.product((False, True), repeat=8):
        under_way = False
        for (due, _), is_answered in zip(run(every, answered), answered, strict=True):
            assert due.merge == (under_way and (is_answered or due.start))
            under_way = due.start or (under_way and not due.merge)


def test_steps_after_the_last_exchange_are_counted_by_the_next_push() -> None:
    schedule = SyncSchedule(3)
    for _ in range(3):
        schedule.step(False)
    first = schedule.started()
    schedule.merged()
    for _ in range(2):
        schedule.step(False)

    assert (first, schedule.started()) == (3, 2)
