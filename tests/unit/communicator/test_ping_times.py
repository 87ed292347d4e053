"""The times at which a trainer calls idle pservers."""

from __future__ import annotations

import pytest

from psrt.communicator.requests.ping_times import LEAST_S, PingTimes

EVERY_S = 0.25


@pytest.fixture
def times() -> PingTimes:
    made = PingTimes(EVERY_S)
    made.add(range(2), 10.0)
    return made


def test_each_pserver_is_called_time_after_time(times: PingTimes) -> None:
    found = [times.due(10.0 + step / 8) for step in range(8)]

    assert found == [[], [], [0, 1], [], [0, 1], [], [0, 1], []]


def test_an_answer_puts_off_the_call_to_its_pserver_alone(times: PingTimes) -> None:
    times.answered(1, 10.125)

    assert [times.due(10.25), times.due(10.375)] == [[0], [1]]


def test_a_pserver_that_answers_all_the_time_is_not_called_and_soon_after_its_last_answer_is(
    times: PingTimes,
) -> None:
    found = []
    for step in range(40):
        now = 10.0 + step / 16
        times.answered(0, now)
        found += times.due(now)
    last = 10.0 + 39 / 16

    assert set(found) == {1}
    assert 0 in times.due(last + EVERY_S)


def test_pservers_that_are_not_to_be_called_are_not(times: PingTimes) -> None:
    times.answered(2, 10.0)
    assert times.due(11.0) == [0, 1]

    times.add(range(3), 11.0)
    assert times.due(11.25) == [0, 1, 2]


def test_waits_end_when_the_first_call_is_due(times: PingTimes) -> None:
    assert PingTimes(EVERY_S).wait_s(10.0) == EVERY_S
    times.answered(1, 10.125)

    assert times.wait_s(10.125) == pytest.approx(0.125)
    assert times.wait_s(10.25) == LEAST_S
    assert times.wait_s(11.0) == LEAST_S
