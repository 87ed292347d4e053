"""Learning-rate schedules as plain frozen data: the rate as a function of the step t = 0, 1, …

`psrt.core.specs.rates` evaluates and checks them. Fields have Fluid's meaning and order, where it
has the schedule. Public through `psrt.core.specs`, which defines their JSON form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from psrt.core.attributes import PlainFields


@dataclass(frozen=True)
class ConstantRate(PlainFields):
    """`rate` at every step."""

    rate: float = 0.01


@dataclass(frozen=True)
class StepDecay(PlainFields):
    """Fields of the schedules that decay by t / decay_steps; `staircase` rounds that down."""

    rate: float
    decay_steps: int
    decay_rate: float
    staircase: bool = False


@dataclass(frozen=True)
class ExponentialDecay(StepDecay):
    """rate · decay_rate^(t / decay_steps); `staircase` floors the exponent."""


@dataclass(frozen=True)
class NaturalExpDecay(StepDecay):
    """rate · exp(−decay_rate · t / decay_steps); `staircase` floors t / decay_steps."""


@dataclass(frozen=True)
class InverseTimeDecay(StepDecay):
    """rate / (1 + decay_rate · t / decay_steps); `staircase` floors t / decay_steps."""


@dataclass(frozen=True)
class PolynomialDecay(PlainFields):
    """(rate − end_rate) · (1 − min(t, decay_steps) / decay_steps)^power + end_rate.

    `cycle` replaces decay_steps by its smallest multiple, from 1 on, that t has not exceeded.
    """

    rate: float
    decay_steps: int
    end_rate: float = 0.0001
    power: float = 1.0
    cycle: bool = False


@dataclass(frozen=True)
class PiecewiseDecay(PlainFields):
    """`rates[i]` while t < `boundaries[i]`, then the last; len(rates) = len(boundaries) + 1."""

    boundaries: tuple[int, ...]
    rates: tuple[float, ...]


@dataclass(frozen=True)
class NoamDecay(PlainFields):
    """rate · d_model^−½ · min(n^−½, n · warmup_steps^−1.5) with n = t + 1 (Vaswani et al. 2017)."""

    rate: float
    d_model: int
    warmup_steps: int


@dataclass(frozen=True)
class CosineDecay(PlainFields):
    """rate · ½ · (1 + cos(π · ⌊t / step_each_epoch⌋ / epochs)).

    Loshchilov & Hutter 2017 without restarts, by whole epochs as in Fluid. Behind `epochs` the
    cosine rises again: train no longer than that.
    """

    rate: float
    step_each_epoch: int
    epochs: int


@dataclass(frozen=True)
class Warmup(PlainFields):
    """start_rate + (end_rate − start_rate) · t / warmup_steps while t < warmup_steps.

    From then on the rate `schedule` has at t: its own steps count from 0, not from the end of the
    warm-up (Goyal et al. 2017; Fluid's linear_lr_warmup).
    """

    schedule: LearningRate
    warmup_steps: int
    start_rate: float
    end_rate: float


@dataclass(frozen=True)
class ComputedRate(PlainFields):
    """`scale` times the number in the var `var` of the program, which each push carries.

    `rate` where no step has computed it.
    """

    var: str
    rate: float = 0.0
    scale: float = 1.0


LearningRate: TypeAlias = (
    ConstantRate
    | ExponentialDecay
    | NaturalExpDecay
    | InverseTimeDecay
    | PolynomialDecay
    | PiecewiseDecay
    | NoamDecay
    | CosineDecay
    | Warmup
    | ComputedRate
)
