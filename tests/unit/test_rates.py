"""Schedules against their published formulas, evaluated by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from psrt.core.errors import ConfigError
from psrt.core.rates import check_schedule, rate_at, scaled
from psrt.core.specs import (
    ConstantRate,
    ExponentialDecay,
    InverseTimeDecay,
    LearningRate,
    NaturalExpDecay,
    PiecewiseDecay,
    PolynomialDecay,
)


@pytest.mark.parametrize(
    ("schedule", "step", "rate"),
    [
        (ConstantRate(0.1), 10**9, 0.1),
        (ExponentialDecay(1.0, 10, 0.5), 0, 1.0),
        (ExponentialDecay(1.0, 10, 0.5), 5, 0.5**0.5),
        (ExponentialDecay(1.0, 10, 0.5, staircase=True), 19, 0.5),
        (NaturalExpDecay(2.0, 10, 0.5), 20, 2.0 * math.exp(-1.0)),
        (NaturalExpDecay(2.0, 10, 0.5, staircase=True), 29, 2.0 * math.exp(-1.0)),
        (InverseTimeDecay(1.0, 10, 3.0), 10, 0.25),
        (InverseTimeDecay(1.0, 10, 3.0, staircase=True), 19, 0.25),
        (PolynomialDecay(1.0, 100, end_rate=0.2, power=2.0), 50, 0.4),
        (PolynomialDecay(1.0, 100, end_rate=0.2), 1000, 0.2),
        (PiecewiseDecay((10, 20), (1.0, 0.5, 0.1)), 9, 1.0),
        (PiecewiseDecay((10, 20), (1.0, 0.5, 0.1)), 10, 0.5),
        (PiecewiseDecay((10, 20), (1.0, 0.5, 0.1)), 20, 0.1),
    ],
)
def test_a_schedule_gives_the_rate_of_its_formula(
    schedule: LearningRate, step: int, rate: float
) -> None:
    assert rate_at(schedule, step) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("schedule", "word"),
    [
        (ExponentialDecay(1.0, 0, 0.5), "decay_steps"),
        (NaturalExpDecay(1.0, 10, -0.5), "decay_rate"),
        (InverseTimeDecay(math.nan, 10, 0.5), "finite"),
        (PolynomialDecay(1.0, 10, power=0.0), "power"),
        (PiecewiseDecay((10,), (1.0,)), "2 rates"),
        (PiecewiseDecay((20, 10), (1.0, 0.5, 0.1)), "increase"),
        ("0.1", "not a learning-rate schedule"),
        (ConstantRate("0.1"), "finite"),  # type: ignore[arg-type]
    ],
)
def test_a_schedule_that_would_fail_later_is_refused_at_once(schedule: Any, word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        check_schedule(schedule)


def test_a_rate_that_grows_without_bound_becomes_infinite_rather_than_failing() -> None:
    assert rate_at(ExponentialDecay(1.0, 1, 10.0), 10**6) == math.inf


@pytest.mark.parametrize(
    "schedule",
    [
        ConstantRate(0.1),
        ExponentialDecay(1.0, 10, 0.5),
        NaturalExpDecay(2.0, 10, 0.5, staircase=True),
        InverseTimeDecay(1.0, 10, 3.0),
        PolynomialDecay(1.0, 100, end_rate=0.2, power=2.0),
        PiecewiseDecay((10, 20), (1.0, 0.5, 0.1)),
    ],
)
@pytest.mark.parametrize("step", [0, 7, 15, 50, 1000])
def test_a_scaled_schedule_is_the_factor_times_the_schedule_at_every_step(
    schedule: LearningRate, step: int
) -> None:
    assert rate_at(scaled(schedule, 3.0), step) == pytest.approx(3.0 * rate_at(schedule, step))
