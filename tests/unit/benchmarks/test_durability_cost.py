"""The cost of durability is the median of the shares of single rounds."""

from __future__ import annotations

from benchmarks.durability_cost.__main__ import figures
from benchmarks.measuring.harness import Figures


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
