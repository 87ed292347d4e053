"""The cost of durability is the median of the shares of single rounds."""

from __future__ import annotations

import pytest

from benchmarks.durability_cost.__main__ import figures, in_time
from benchmarks.measuring.harness import Figures
from tests.support.clock import ManualClock


def measured(rate: float, cpu_ms: float) -> Figures:
    half = cpu_ms / 2
    return {
        "examples_per_s": rate,
        "trainer_cpu_ms_per_step": half,
        "pserver_cpu_ms_per_step": half,
    }


def test_shares_are_those_of_the_same_round() -> None:
    rounds = [
        {"none": measured(1000, 10), "delta": measured(900, 12)},
        {"none": measured(100, 10), "delta": measured(99, 10)},
        {"none": measured(500, 10), "delta": measured(500, 20)},
    ]

    found = figures(["none", "delta"], rounds)

    assert found["none"] == {
        "examples_per_s": 500,
        "cpu_ms_per_step": 10.0,
        "share": 1.0,
        "cpu_share": 1.0,
    }
    assert (found["delta"]["share"], found["delta"]["cpu_share"]) == (0.99, 0.833)


def test_without_a_run_that_is_not_durable_there_are_no_shares() -> None:
    found = figures(["delta"], [{"delta": measured(900, 12)}])

    assert found == {"delta": {"examples_per_s": 900, "cpu_ms_per_step": 12.0}}


def rounds_of(within_s: float, run_s: float = 10.0, rounds: int = 5) -> list[list[str]]:
    """The kinds of each round, in their order, if each run takes `run_s`."""
    clock = ManualClock()

    def train(kind: str) -> dict[str, float]:
        clock.advance(run_s)
        return {"examples_per_s": 1.0}

    found = in_time(["none", "cut", "delta"], rounds, within_s, train, clock.now)
    return [list(each) for each in found]


def test_the_order_changes_from_round_to_round() -> None:
    assert rounds_of(0.0, rounds=2) == [["none", "cut", "delta"], ["cut", "delta", "none"]]


@pytest.mark.parametrize(("within_s", "complete"), [(30.0, 1), (59.0, 1), (60.0, 2), (29.0, 0)])
def test_a_round_counts_if_all_of_its_runs_end_in_time(within_s: float, complete: int) -> None:
    assert len(rounds_of(within_s)) == complete
