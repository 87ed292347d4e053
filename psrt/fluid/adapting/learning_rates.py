"""Schedules of the learning rate by Fluid's names, in `fluid.layers` as there.

A schedule is no op but a value that an optimizer takes and pservers evaluate; t counts the updates.
Numbers it does not allow raise `ConfigError` when an optimizer takes it.
"""

from __future__ import annotations

from collections.abc import Sequence

from psrt.core import specs
from psrt.core.specs import LearningRate
from psrt.fluid.adapting.tensors import autoincreased_step_counter
from psrt.fluid.names import Variable


def exponential_decay(
    learning_rate: float, decay_steps: int, decay_rate: float, staircase: bool = False
) -> LearningRate:
    """Exponential decay: learning_rate · decay_rate^(t / decay_steps)."""
    return specs.ExponentialDecay(learning_rate, decay_steps, decay_rate, staircase)


def natural_exp_decay(
    learning_rate: float, decay_steps: int, decay_rate: float, staircase: bool = False
) -> LearningRate:
    """Natural exponential decay: learning_rate · exp(−decay_rate · t / decay_steps)."""
    return specs.NaturalExpDecay(learning_rate, decay_steps, decay_rate, staircase)


def inverse_time_decay(
    learning_rate: float, decay_steps: int, decay_rate: float, staircase: bool = False
) -> LearningRate:
    """Inverse time decay: learning_rate / (1 + decay_rate · t / decay_steps)."""
    return specs.InverseTimeDecay(learning_rate, decay_steps, decay_rate, staircase)


def polynomial_decay(
    learning_rate: float,
    decay_steps: int,
    end_learning_rate: float = 0.0001,
    power: float = 1.0,
    cycle: bool = False,
) -> LearningRate:
    """Polynomial decay from learning_rate to end_learning_rate in decay_steps.

    With `cycle` the rate rises again after decay_steps, to decay in one more time as many.
    """
    return specs.PolynomialDecay(learning_rate, decay_steps, end_learning_rate, power, cycle)


def piecewise_decay(boundaries: Sequence[int], values: Sequence[float]) -> LearningRate:
    """Piecewise constant rate: `values[i]` while t < `boundaries[i]`, then the last."""
    return specs.PiecewiseDecay(tuple(boundaries), tuple(values))


def noam_decay(d_model: int, warmup_steps: int, learning_rate: float = 1.0) -> LearningRate:
    """Noam decay: learning_rate · d_model^−½ · min(n^−½, n · warmup_steps^−1.5), n = t + 1."""
    return specs.NoamDecay(learning_rate, d_model, warmup_steps)


def cosine_decay(learning_rate: float, step_each_epoch: int, epochs: int) -> LearningRate:
    """Cosine decay: learning_rate · ½ · (1 + cos(π · ⌊t / step_each_epoch⌋ / epochs))."""
    return specs.CosineDecay(learning_rate, step_each_epoch, epochs)


def linear_lr_warmup(
    learning_rate: float | LearningRate, warmup_steps: int, start_lr: float, end_lr: float
) -> LearningRate:
    """Linear warmup from start_lr to end_lr in warmup_steps, then a rate or schedule."""
    if isinstance(learning_rate, int | float):
        learning_rate = specs.ConstantRate(float(learning_rate))
    return specs.Warmup(learning_rate, warmup_steps, start_lr, end_lr)


def decay_step_counter(begin: int = 0) -> Variable:
    """Return the float32 number of runs of the program, `begin` in the first: for own schedules."""
    return autoincreased_step_counter("@LR_DECAY_COUNTER@", begin).astype("float32")


__all__ = ["cosine_decay", "exponential_decay", "inverse_time_decay", "linear_lr_warmup"]
__all__ += ["natural_exp_decay", "noam_decay", "piecewise_decay", "polynomial_decay"]
