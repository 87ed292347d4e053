"""Schedules against their published formulas, evaluated by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from psrt.core.errors import ConfigError
from psrt.core.specs import (
    ComputedRate,
    ConstantRate,
    CosineDecay,
    ExponentialDecay,
    InverseTimeDecay,
    LearningRate,
    NaturalExpDecay,
    NoamDecay,
    PiecewiseDecay,
    PolynomialDecay,
    Warmup,
    from_json,
    to_json,
)
from psrt.core.specs.rates import check_schedule, rate_at, scaled

WARMED_DECAY = Warmup(ExponentialDecay(1.0, 10, 0.5), 10, 0.2, 0.8)


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
        (PolynomialDecay(1.0, 100, end_rate=0.2, cycle=True), 0, 1.0),
        (PolynomialDecay(1.0, 100, end_rate=0.2, cycle=True), 100, 0.2),
        (PolynomialDecay(1.0, 100, end_rate=0.2, cycle=True), 150, 0.4),
        (PolynomialDecay(1.0, 100, end_rate=0.2, cycle=True), 200, 0.2),
        (PiecewiseDecay((10, 20), (1.0, 0.5, 0.1)), 9, 1.0),
        (PiecewiseDecay((10, 20), (1.0, 0.5, 0.1)), 10, 0.5),
        (PiecewiseDecay((10, 20), (1.0, 0.5, 0.1)), 20, 0.1),
        (NoamDecay(2.0, 64, 100), 0, 2.0 * 64**-0.5 * 100**-1.5),
        (NoamDecay(2.0, 64, 100), 99, 2.0 * 64**-0.5 * 100**-0.5),
        (NoamDecay(2.0, 64, 100), 399, 2.0 * 64**-0.5 * 400**-0.5),
        (CosineDecay(0.4, 10, 4), 9, 0.4),
        (CosineDecay(0.4, 10, 4), 10, 0.2 * (1 + math.cos(math.pi / 4))),
        (CosineDecay(0.4, 10, 4), 25, 0.2),
        (CosineDecay(0.4, 10, 4), 40, 0.0),
        (WARMED_DECAY, 0, 0.2),
        (WARMED_DECAY, 5, 0.5),
        (WARMED_DECAY, 10, 0.5),
        (WARMED_DECAY, 20, 0.25),
        (Warmup(ConstantRate(0.1), 4, 0.0, 0.1), 3, 0.075),
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
        (NoamDecay(1.0, 0, 100), "d_model"),
        (NoamDecay(1.0, 64, 0), "warmup_steps"),
        (CosineDecay(1.0, 10, 0), "epochs"),
        (CosineDecay(1.0, 0.5, 2), "step_each_epoch"),  # type: ignore[arg-type]
        (Warmup(ConstantRate(0.1), 0, 0.0, 0.1), "warmup_steps"),
        (Warmup(ConstantRate(0.1), 5, math.inf, 0.1), "finite"),
        (Warmup(PolynomialDecay(1.0, 0), 5, 0.0, 0.1), "decay_steps"),
        (Warmup(WARMED_DECAY, 5, 0.0, 0.1), "cannot be warmed up"),
        (Warmup(0.1, 5, 0.0, 0.1), "not a learning-rate schedule"),  # type: ignore[arg-type]
        (ConstantRate("0.1"), "finite"),  # type: ignore[arg-type]
        (ConstantRate(-0.1), "at least 0, not -0.1"),
        (ConstantRate(math.nan), "a rate must be a finite number of float32, at least 0, not nan"),
        (ConstantRate(1e300), "a rate must be a finite number of float32"),
        (ConstantRate(10**400), "a rate must be a finite number of float32"),
        (NoamDecay(1.0, 10**400, 100), "d_model must be a whole number from 1"),
        (ComputedRate("rate", math.nan), "finite"),
        (ComputedRate(3), "var is no name"),  # type: ignore[arg-type]
    ],
)
def test_a_schedule_that_would_fail_later_is_refused_at_once(schedule: Any, word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        check_schedule(schedule)


def test_a_schedule_may_be_given_lists() -> None:
    schedule = PiecewiseDecay([10, 20], [1.0, 0.5, 0.1])  # type: ignore[arg-type]

    check_schedule(schedule)

    assert schedule == PiecewiseDecay((10, 20), (1.0, 0.5, 0.1))


def test_a_computed_rate_is_scaled_with_its_var() -> None:
    assert scaled(ComputedRate("rate", 0.5), 3.0) == ComputedRate("rate", 1.5, 3.0)


def test_a_rate_that_grows_without_bound_becomes_infinite_rather_than_failing() -> None:
    assert rate_at(ExponentialDecay(1.0, 1, 10.0), 10**6) == math.inf


SCHEDULES = [
    ConstantRate(0.1),
    ExponentialDecay(1.0, 10, 0.5),
    NaturalExpDecay(2.0, 10, 0.5, staircase=True),
    InverseTimeDecay(1.0, 10, 3.0),
    PolynomialDecay(1.0, 100, end_rate=0.2, power=2.0),
    PolynomialDecay(1.0, 10, end_rate=0.2, cycle=True),
    PiecewiseDecay((10, 20), (1.0, 0.5, 0.1)),
    NoamDecay(2.0, 64, 100),
    CosineDecay(0.4, 10, 4),
    WARMED_DECAY,
    ComputedRate("rate", 0.5),
]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("step", [0, 7, 15, 50, 1000])
def test_a_scaled_schedule_is_the_factor_times_the_schedule_at_every_step(
    schedule: LearningRate, step: int
) -> None:
    assert rate_at(scaled(schedule, 3.0), step) == pytest.approx(3.0 * rate_at(schedule, step))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_schedule_survives_its_json_form(schedule: LearningRate) -> None:
    assert from_json(to_json(schedule)) == schedule
