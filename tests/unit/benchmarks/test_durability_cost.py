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
        "runs": 3,
        "examples_per_s": 500,
        "cpu_ms_per_step": 10.0,
        "share": 1.0,
        "cpu_share": 1.0,
    }
    assert (found["delta"]["share"], found["delta"]["cpu_share"]) == (0.99, 0.833)


def test_without_a_run_that_is_not_durable_there_are_no_shares() -> None:
    found = figures(["delta"], [{"delta": measured(900, 12)}])

    assert found == {"delta": {"runs": 1, "examples_per_s": 900, "cpu_ms_per_step": 12.0}}


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


@pytest.mark.parametrize(
    ("within_s", "kinds"), [(60.0, [3, 3, 0]), (59.0, [3, 2]), (30.0, [3, 0]), (9.0, [1])]
)
def test_no_run_begins_that_would_end_too_late(within_s: float, kinds: list[int]) -> None:
    assert [len(each) for each in rounds_of(within_s)] == kinds


def test_a_round_that_lacks_a_kind_counts_for_the_others() -> None:
    rounds = [{"none": measured(500, 10), "delta": measured(450, 10)}, {"none": measured(300, 10)}]

    found = figures(["none", "delta", "replica"], rounds)

    assert (found["none"]["runs"], found["none"]["examples_per_s"]) == (2, 400)
    assert (found["delta"]["runs"], found["delta"]["share"]) == (1, 0.9)
    assert "replica" not in found
