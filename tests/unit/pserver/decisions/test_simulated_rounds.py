"""Rounds on paper (`benchmarks.simulate_rounds`): queues against a clerk that serves one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.simulate_rounds import Round, exchange, fifo, figures, round_times

COSTS = Round(
    trainers=3,
    pservers=2,
    step_s=0.010,
    up_bytes=1e6,
    down_bytes=2e6,
    trainer_call_s=0.0002,
    pserver_call_s=0.0004,
    apply_s=0.0001,
    link_bytes_per_s=1e9,
    latency_s=0.00005,
    jitter=0.0,
)


def served(arrivals: list[float], service_s: float) -> list[float]:
    """The times at which each leaves a clerk who serves in the order of arrival."""
    left, free = [0.0] * len(arrivals), 0.0
    for number in sorted(range(len(arrivals)), key=lambda n: arrivals[n]):
        free = max(free, arrivals[number]) + service_s
        left[number] = free
    return left


def test_queues_serve_in_the_order_of_arrival() -> None:
    arrivals = np.random.default_rng(1).random((5, 40))

    left = fifo(arrivals, 0.03, axis=1)

    np.testing.assert_allclose(left, [served(list(row), 0.03) for row in arrivals])
    np.testing.assert_allclose(fifo(arrivals.T, 0.03, axis=0), left.T)


def test_a_round_of_one_trainer_and_one_pserver_is_the_sum_of_its_parts() -> None:
    alone = replace(COSTS, trainers=1, pservers=1)

    (end,) = exchange(np.array([0.010]), alone)

    passing = 2 * 0.00005 + (1e6 + 2e6) / 1e9
    assert end == pytest.approx(0.010 + 0.0002 + 0.0004 + 0.0001 + passing)


def test_a_round_waits_for_the_slowest_trainer() -> None:
    ends = exchange(np.array([0.010, 0.010, 0.500]), COSTS)

    assert ends.min() > 0.500


def test_every_trainer_more_costs_a_link_the_busier_of_its_directions() -> None:
    few = figures(replace(COSTS, trainers=10))["exchange_ms"]
    many = figures(replace(COSTS, trainers=20))["exchange_ms"]

    of_ten = 10 * (2e6 / 1e9 + 0.0001)
    assert many - few == pytest.approx(of_ten * 1e3)


def test_rounds_are_as_even_as_steps_and_stragglers_stretch_them() -> None:
    even = round_times(COSTS, rounds=5)
    uneven = round_times(replace(COSTS, slow_share=0.5, slow_factor=10.0), rounds=20)

    np.testing.assert_allclose(even, even[0])
    assert uneven.max() == pytest.approx(even[0] + 9 * COSTS.step_s, rel=0.05)
