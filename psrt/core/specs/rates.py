"""Learning-rate schedules: the rate of a step, as plain functions of a spec.

Pservers call `rate_at` once per table and update (per round in sync, per global step otherwise);
local training calls it once per step. `check_schedule` rejects schedules that could fail later, so
an accepted gradient can always be applied. Formulas: docstrings of `psrt.core.specs.schedules`.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, assert_never, cast

from psrt.core.attributes import plain
from psrt.core.errors import ConfigError
from psrt.core.specs.formula_rules import is_float32
from psrt.core.specs.schedules import (
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
    StepDecay,
    Warmup,
)

_MOST_STEPS = 1 << 63


def rate_at(schedule: LearningRate, step: int) -> float:
    """Return the learning rate of step `step` = 0, 1, …"""
    match schedule:
        case ConstantRate() | ComputedRate():
            return schedule.rate
        case ExponentialDecay():
            return schedule.rate * _power(schedule.decay_rate, _age(schedule, step))
        case NaturalExpDecay():
            return schedule.rate * math.exp(-schedule.decay_rate * _age(schedule, step))
        case InverseTimeDecay():
            return schedule.rate / (1.0 + schedule.decay_rate * _age(schedule, step))
        case PolynomialDecay():
            return _polynomial(schedule, step)
        case PiecewiseDecay():
            passed = sum(step >= boundary for boundary in schedule.boundaries)
            return schedule.rates[passed]
        case NoamDecay():
            return _noam(schedule, step + 1)
        case CosineDecay():
            return _cosine(schedule, step // schedule.step_each_epoch)
        case Warmup():
            return _warmup(schedule, step)
        case _:
            assert_never(schedule)


_RATE = "Correct the schedule where the optimizer is declared."
_RATE_AS_TEXT = "Give a number, without quotes: learning_rate=0.1."


def schedule_of(rate: Any) -> LearningRate:
    """Return the checked schedule of a learning rate, which is a number or a schedule."""
    given = plain(rate)
    if isinstance(given, int | float):
        given = ConstantRate(float(given) if is_float32(given) else given)
    check_schedule(given)
    schedule: LearningRate = given
    return schedule


def check_schedule(schedule: object) -> None:
    """Raise `ConfigError` for a schedule whose rate is undefined at some step."""
    problem = _problem(schedule)
    if problem:
        raise ConfigError(
            f"learning rate {schedule!r} is not usable: {problem}.",
            hint=_RATE_AS_TEXT if isinstance(schedule, str) else _RATE,
        )


def _age(schedule: StepDecay, step: int) -> float:
    age = step / schedule.decay_steps
    return float(math.floor(age)) if schedule.staircase else age


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:  # a rate that grows without bound: let it be infinite, not an exception
        return math.inf


def _polynomial(schedule: PolynomialDecay, step: int) -> float:
    cycles = max(-(-step // schedule.decay_steps), 1) if schedule.cycle else 1
    steps = schedule.decay_steps * cycles
    left = 1.0 - min(step, steps) / steps
    return (schedule.rate - schedule.end_rate) * math.pow(left, schedule.power) + schedule.end_rate


def _noam(schedule: NoamDecay, number: int) -> float:
    rising = number * math.pow(schedule.warmup_steps, -1.5)
    return schedule.rate / math.sqrt(schedule.d_model) * min(1.0 / math.sqrt(number), rising)


def _cosine(schedule: CosineDecay, epoch: int) -> float:
    return schedule.rate * 0.5 * (1.0 + math.cos(math.pi * epoch / schedule.epochs))


def _warmup(schedule: Warmup, step: int) -> float:
    if step >= schedule.warmup_steps:
        return rate_at(schedule.schedule, step)
    rise = (schedule.end_rate - schedule.start_rate) * step / schedule.warmup_steps
    return schedule.start_rate + rise


def _problem(schedule: object) -> str:
    match schedule:
        case ConstantRate(rate=rate):
            return _rates_problem((rate,))
        case ComputedRate(var=var, rate=rate, scale=scale):
            return _rates_problem((rate, scale)) if isinstance(var, str) else "var is no name"
        case StepDecay():
            return _rates_problem((schedule.rate,)) or _decay_problem(schedule)
        case PolynomialDecay(rate=rate, end_rate=end_rate, power=power):
            if not is_float32(power) or power <= 0:
                return f"power must be a positive number, not {power!r}"
            return _rates_problem((rate, end_rate)) or _steps_problem(schedule, "decay_steps")
        case PiecewiseDecay(boundaries=boundaries, rates=rates):
            return _piecewise_problem(boundaries, rates)
        case NoamDecay(rate=rate):
            return _rates_problem((rate,)) or _steps_problem(schedule, "d_model", "warmup_steps")
        case CosineDecay(rate=rate):
            return _rates_problem((rate,)) or _steps_problem(schedule, "step_each_epoch", "epochs")
        case Warmup():
            return _warmup_problem(schedule)
        case _:
            return "it is not a learning-rate schedule"


def _decay_problem(schedule: StepDecay) -> str:
    if not is_float32(schedule.decay_rate) or schedule.decay_rate < 0:
        return f"decay_rate must be a number of at least 0, not {schedule.decay_rate!r}"
    return _steps_problem(schedule, "decay_steps")


def _piecewise_problem(boundaries: Any, rates: Any) -> str:
    if not isinstance(boundaries, tuple) or not isinstance(rates, tuple):
        return f"boundaries {boundaries!r} and rates {rates!r} must be lists"
    if not all(isinstance(boundary, int) for boundary in boundaries):
        return "boundaries must be whole numbers of steps"
    if len(rates) != len(boundaries) + 1:
        return f"{len(boundaries)} boundaries need {len(boundaries) + 1} rates, not {len(rates)}"
    if list(boundaries) != sorted(set(boundaries)):
        return "boundaries must increase"
    return _rates_problem(rates)


def _warmup_problem(schedule: Warmup) -> str:
    if isinstance(schedule.schedule, Warmup):
        return "a warm-up cannot be warmed up"
    return (
        _rates_problem((schedule.start_rate, schedule.end_rate))
        or _steps_problem(schedule, "warmup_steps")
        or _problem(schedule.schedule)
    )


def _steps_problem(schedule: object, *names: str) -> str:
    """Check fields that count and divide: whole numbers from 1 in the range of float64."""
    for name in names:
        count = getattr(schedule, name)
        if not isinstance(count, int) or not 1 <= count <= _MOST_STEPS:
            return f"{name} must be a whole number from 1 to 2^63, not {count!r}"
    return ""


def _rates_problem(rates: tuple[object, ...]) -> str:
    bad = [rate for rate in rates if not is_float32(rate) or cast("float", rate) < 0]
    return f"a rate must be a finite number of float32, at least 0, not {bad[0]!r}" if bad else ""


def scaled(schedule: LearningRate, factor: float) -> LearningRate:
    """Return the schedule whose rate is `factor` times that of `schedule` at every step."""
    if factor == 1.0:
        return schedule
    if isinstance(schedule, PiecewiseDecay):
        return dataclasses.replace(schedule, rates=tuple(rate * factor for rate in schedule.rates))
    if isinstance(schedule, Warmup):
        return Warmup(
            scaled(schedule.schedule, factor),
            schedule.warmup_steps,
            schedule.start_rate * factor,
            schedule.end_rate * factor,
        )
    if isinstance(schedule, ComputedRate):
        schedule = dataclasses.replace(schedule, scale=schedule.scale * factor)
    if isinstance(schedule, PolynomialDecay):
        schedule = dataclasses.replace(schedule, end_rate=schedule.end_rate * factor)
    return dataclasses.replace(schedule, rate=schedule.rate * factor)
