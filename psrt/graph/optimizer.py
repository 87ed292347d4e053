"""Optimizer declarations, public as `psrt.optimizer`: they say how parameters are trained.

`minimize` appends the backward, clipping and regularisation, and one update op a parameter, and
writes optimizer, learning rate and regularizer into each parameter's record, from which the
partition plan makes the pservers' tables. Formulas stand in `psrt.core.specs.optimizers` and
`psrt.core.specs.schedules`. Names and defaults of arguments are Fluid's; `regularization` and
`grad_clip` hold for all parameters that do not say otherwise themselves.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TypedDict, Unpack

from psrt.core import specs
from psrt.core.specs import (
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
    check_formula,
    scaled,
    schedule_of,
)
from psrt.graph.adjustments import append_clipping, append_regularization
from psrt.graph.backward import append_backward
from psrt.graph.builder import current_builder
from psrt.graph.clip import Clip
from psrt.graph.param import Param
from psrt.graph.program import Op, Program, Var
from psrt.graph.regularizer import Regularizer


@dataclass(frozen=True)
class Declaration:
    """An optimizer, its learning rate (a number, or a schedule of this module), and what is done
    to gradients before it sees them."""

    spec: specs.Optimizer
    learning_rate: LearningRate
    regularization: Regularizer | None = None
    grad_clip: Clip | None = None

    def minimize(self, loss: Var) -> dict[str, str]:
        """Train every parameter `loss` depends on; the var an update reads, by parameter name.

        A program may have several losses if each trains parameters of its own.
        """
        builder = current_builder("minimize")
        program = builder.program
        names = list(append_backward(program, loss))
        asked = {name: builder.asked.get(name, Param()) for name in names}
        append_clipping(program, {n: asked[n].clip or self.grad_clip for n in names})
        decays = {n: asked[n].regularizer or self.regularization for n in names}
        append_regularization(program, decays)
        last = program.gradients()
        for name in names:
            parameter, declared = program.parameters[name], asked[name].optimizer or self
            program.parameters[name] = dataclasses.replace(
                parameter,
                optimizer=declared.spec,
                learning_rate=scaled(declared.learning_rate, parameter.rate_scale),
                regularizer=_with_effect(decays[name]),
            )
            program.ops.append(_update(program, name, last[name]))
        return {name: last[name] for name in names}


def _with_effect(regularizer: Regularizer | None) -> Regularizer | None:
    return regularizer if regularizer is not None and regularizer.coeff else None


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


class Adjust(TypedDict, total=False):
    """Arguments of every declaration in this module."""

    regularization: Regularizer | None
    grad_clip: Clip | None


def _declare(
    spec: specs.Optimizer, learning_rate: float | LearningRate, adjust: Adjust
) -> Declaration:
    check_formula("optimizer", spec, specs.Optimizer)
    return Declaration(spec, schedule_of(learning_rate), **adjust)


def Sgd(
    learning_rate: float | LearningRate,
    **adjust: Unpack[Adjust],
) -> Declaration:
    """w −= lr · g."""
    return _declare(specs.Sgd(), learning_rate, adjust)


def Momentum(
    learning_rate: float | LearningRate,
    momentum: float = 0.9,
    use_nesterov: bool = False,
    **adjust: Unpack[Adjust],
) -> Declaration:
    """Gradients are gathered in a velocity that decays (Polyak 1964)."""
    return _declare(specs.Momentum(momentum, use_nesterov), learning_rate, adjust)


def Adagrad(
    learning_rate: float | LearningRate,
    epsilon: float = 1e-6,
    initial_accumulator: float = 0.0,
    **adjust: Unpack[Adjust],
) -> Declaration:
    """Each number's rate falls with the squares it has seen (Duchi et al. 2011)."""
    return _declare(specs.Adagrad(epsilon, initial_accumulator), learning_rate, adjust)


def DecayedAdagrad(
    learning_rate: float | LearningRate,
    decay: float = 0.95,
    epsilon: float = 1e-6,
    **adjust: Unpack[Adjust],
) -> Declaration:
    """Adagrad that forgets."""
    return _declare(specs.DecayedAdagrad(decay, epsilon), learning_rate, adjust)


def Adadelta(
    learning_rate: float | LearningRate = 1.0,
    epsilon: float = 1e-6,
    rho: float = 0.95,
    **adjust: Unpack[Adjust],
) -> Declaration:
    """Zeiler 2012, whose formula has no rate: 1. (Fluid takes one and does not use it.)"""
    return _declare(specs.Adadelta(rho, epsilon), learning_rate, adjust)


def RmsProp(
    learning_rate: float | LearningRate,
    rho: float = 0.95,
    epsilon: float = 1e-6,
    momentum: float = 0.0,
    centered: bool = False,
    **adjust: Unpack[Adjust],
) -> Declaration:
    """Tieleman & Hinton 2012; Graves 2013 when centered."""
    return _declare(specs.RmsProp(rho, epsilon, momentum, centered), learning_rate, adjust)


def Adam(
    learning_rate: float | LearningRate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    lazy_mode: bool = True,
    **adjust: Unpack[Adjust],
) -> Declaration:
    """Kingma & Ba 2015. Of sparse tables only touched rows move, unless lazy_mode is off."""
    return _declare(specs.Adam(beta1, beta2, epsilon, lazy_mode), learning_rate, adjust)


def AdamW(
    learning_rate: float | LearningRate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.01,
    lazy_mode: bool = True,
    **adjust: Unpack[Adjust],
) -> Declaration:
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019)."""
    return _declare(
        specs.AdamW(beta1, beta2, epsilon, weight_decay, lazy_mode), learning_rate, adjust
    )


def Adamax(
    learning_rate: float | LearningRate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    **adjust: Unpack[Adjust],
) -> Declaration:
    """Adam by the largest gradient instead of the mean square (Kingma & Ba 2015)."""
    return _declare(specs.Adamax(beta1, beta2, epsilon), learning_rate, adjust)


def Ftrl(
    learning_rate: float | LearningRate,
    l1: float = 0.0,
    l2: float = 0.0,
    lr_power: float = -0.5,
    initial_accumulator: float = 0.0,
    **adjust: Unpack[Adjust],
) -> Declaration:
    """FTRL-Proximal, which makes sparse weights (McMahan et al. 2013)."""
    return _declare(specs.Ftrl(l1, l2, lr_power, initial_accumulator), learning_rate, adjust)


def LarsMomentum(
    learning_rate: float | LearningRate,
    momentum: float = 0.9,
    lars_coeff: float = 0.001,
    lars_weight_decay: float = 0.0005,
    epsilon: float = 0.0,
    **adjust: Unpack[Adjust],
) -> Declaration:
    """Momentum with a rate for each parameter by norms (You et al. 2017)."""
    return _declare(
        specs.LarsMomentum(momentum, lars_coeff, lars_weight_decay, epsilon), learning_rate, adjust
    )


def Lamb(
    learning_rate: float | LearningRate = 0.001,
    lamb_weight_decay: float = 0.01,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    **adjust: Unpack[Adjust],
) -> Declaration:
    """Adam with a rate for each parameter by norms (You et al. 2020)."""
    return _declare(specs.Lamb(lamb_weight_decay, beta1, beta2, epsilon), learning_rate, adjust)


def CtrSgd(
    learning_rate: float | LearningRate = 0.05,
    weight_bounds: tuple[float, float] = (-10.0, 10.0),
    **adjust: Unpack[Adjust],
) -> Declaration:
    """w −= lr · g within bounds; this and the next four are for sparse tables of click models."""
    return _declare(specs.CtrSgd(*weight_bounds), learning_rate, adjust)


def CtrAdagrad(
    learning_rate: float | LearningRate = 0.05,
    initial_g2sum: float = 3.0,
    weight_bounds: tuple[float, float] = (-10.0, 10.0),
    show_scale: bool = True,
    **adjust: Unpack[Adjust],
) -> Declaration:
    """Adagrad with one sum of squares for each row."""
    spec = specs.CtrAdagrad(initial_g2sum, *weight_bounds, show_scale)
    return _declare(spec, learning_rate, adjust)


def CtrStdAdagrad(
    learning_rate: float | LearningRate = 0.05,
    initial_g2sum: float = 3.0,
    weight_bounds: tuple[float, float] = (-10.0, 10.0),
    show_scale: bool = True,
    **adjust: Unpack[Adjust],
) -> Declaration:
    """Adagrad with a sum of squares for each weight."""
    spec = specs.CtrStdAdagrad(initial_g2sum, *weight_bounds, show_scale)
    return _declare(spec, learning_rate, adjust)


def CtrAdam(
    learning_rate: float | LearningRate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_bounds: tuple[float, float] = (-10.0, 10.0),
    **adjust: Unpack[Adjust],
) -> Declaration:
    """Adam within bounds, each row by its own count of updates."""
    return _declare(specs.CtrAdam(beta1, beta2, epsilon, *weight_bounds), learning_rate, adjust)


def CtrSharedAdam(
    learning_rate: float | LearningRate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_bounds: tuple[float, float] = (-10.0, 10.0),
    **adjust: Unpack[Adjust],
) -> Declaration:
    """The same with two numbers of state for each row."""
    spec = specs.CtrSharedAdam(beta1, beta2, epsilon, *weight_bounds)
    return _declare(spec, learning_rate, adjust)


__all__ = [
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "ConstantRate",
    "CosineDecay",
    "CtrAdagrad",
    "CtrAdam",
    "CtrSgd",
    "CtrSharedAdam",
    "CtrStdAdagrad",
    "DecayedAdagrad",
    "Declaration",
    "ExponentialDecay",
    "Ftrl",
    "InverseTimeDecay",
    "Lamb",
    "LarsMomentum",
    "Momentum",
    "NaturalExpDecay",
    "NoamDecay",
    "PiecewiseDecay",
    "PolynomialDecay",
    "RmsProp",
    "Sgd",
    "Warmup",
]
