"""Optimizer declarations, public as `psrt.optimizer`: they say how parameters are trained.

`minimize` appends the backward and one update op a parameter, and writes optimizer and learning
rate into each parameter's record, from which the partition plan makes the pservers' tables.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from psrt.core import specs
from psrt.core.rates import scaled
from psrt.core.specs import (
    ConstantRate,
    ExponentialDecay,
    InverseTimeDecay,
    LearningRate,
    NaturalExpDecay,
    PiecewiseDecay,
    PolynomialDecay,
)
from psrt.graph.backward import append_backward
from psrt.graph.builder import current_builder
from psrt.graph.program import Op, Program, Var


@dataclass(frozen=True)
class Declaration:
    """An optimizer and its learning rate: a number, or a schedule of this module."""

    spec: specs.Optimizer
    learning_rate: LearningRate

    def minimize(self, loss: Var) -> dict[str, str]:
        """Train every parameter `loss` depends on; gradient var by parameter name."""
        program = current_builder("minimize").program
        gradients = append_backward(program, loss)
        for name, gradient in gradients.items():
            parameter = program.parameters[name]
            program.parameters[name] = dataclasses.replace(
                parameter,
                optimizer=self.spec,
                learning_rate=scaled(self.learning_rate, parameter.rate_scale),
            )
            program.ops.append(_update(program, name, gradient))
        return gradients


def _update(program: Program, name: str, gradient: str) -> Op:
    user = next(op for op in program.ops if name in op.reads())
    return Op(
        "update",
        {"parameter": (name,), "gradient": (gradient,)},
        {"parameter": (name,)},
        role="optimize",
        layer=user.layer,
        origin=user.origin,
    )


def _rate(rate: float | LearningRate) -> LearningRate:
    return ConstantRate(float(rate)) if isinstance(rate, int | float) else rate


def Sgd(learning_rate: float | LearningRate) -> Declaration:
    """w −= lr · g."""
    return Declaration(specs.Sgd(), _rate(learning_rate))


def Adagrad(
    learning_rate: float | LearningRate,
    epsilon: float = 1e-6,
    initial_accumulator: float = 0.0,
) -> Declaration:
    """m += g²; w −= lr · g / (√m + epsilon)."""
    return Declaration(specs.Adagrad(epsilon, initial_accumulator), _rate(learning_rate))


def Adam(
    learning_rate: float | LearningRate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
) -> Declaration:
    """Kingma & Ba 2015; on sparse tables only touched rows move."""
    return Declaration(specs.Adam(beta1, beta2, epsilon), _rate(learning_rate))


__all__ = [
    "Adagrad",
    "Adam",
    "ConstantRate",
    "Declaration",
    "ExponentialDecay",
    "InverseTimeDecay",
    "NaturalExpDecay",
    "PiecewiseDecay",
    "PolynomialDecay",
    "Sgd",
]
