"""Optimizers and learning rate schedules, public as `psrt.optimizer`.

Each function returns a `Declaration`, whose `minimize` trains the parameters of a loss. Names and
defaults of arguments are Fluid's. `learning_rate` is a float or a schedule. Every optimizer also
takes `regularization` and `grad_clip`, defaults for parameters whose `Param` sets none. All raise
`ConfigError` for numbers the formula does not allow.

In the formulas w is a weight, g its gradient, lr the learning rate of the step and t the number of
the update. `psrt.core.specs.optimizers` and `psrt.core.specs.schedules` give them in full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

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
)
from psrt.graph.declaration import Declaration, GradientOptions, declare
from psrt.graph.names import refuse_unknown


def Sgd(learning_rate: float | LearningRate, **options: Unpack[GradientOptions]) -> Declaration:
    """Declare stochastic gradient descent: w −= lr · g (Robbins & Monro 1951)."""
    return declare(specs.Sgd(), learning_rate, options)


def Momentum(
    learning_rate: float | LearningRate,
    momentum: float = 0.9,
    use_nesterov: bool = False,
    **options: Unpack[GradientOptions],
) -> Declaration:
    """Declare momentum: v = momentum · v + g; w −= lr · v (Polyak 1964).

    `use_nesterov`: w −= lr · (g + momentum · v) (Sutskever et al. 2013).
    """
    return declare(specs.Momentum(momentum, use_nesterov), learning_rate, options)


def Adagrad(
    learning_rate: float | LearningRate,
    epsilon: float = 1e-6,
    initial_accumulator: float = 0.0,
    **options: Unpack[GradientOptions],
) -> Declaration:
    """Declare Adagrad: m += g²; w −= lr · g / (√m + epsilon) (Duchi et al. 2011)."""
    return declare(specs.Adagrad(epsilon, initial_accumulator), learning_rate, options)


def RowWiseAdagrad(
    learning_rate: float | LearningRate,
    epsilon: float = 1e-8,
    initial_accumulator: float = 0.0,
    **options: Unpack[GradientOptions],
) -> Declaration:
    """Declare Adagrad with one number of state per row: TorchRec's and FBGEMM's exact form."""
    return declare(specs.RowWiseAdagrad(epsilon, initial_accumulator), learning_rate, options)


def DecayedAdagrad(
    learning_rate: float | LearningRate,
    decay: float = 0.95,
    epsilon: float = 1e-6,
    **options: Unpack[GradientOptions],
) -> Declaration:
    """Declare Adagrad over a decaying mean: m = decay · m + (1 − decay) · g² (Fluid's own)."""
    return declare(specs.DecayedAdagrad(decay, epsilon), learning_rate, options)


def Adadelta(
    learning_rate: float | LearningRate = 1.0,
    epsilon: float = 1e-6,
    rho: float = 0.95,
    **options: Unpack[GradientOptions],
) -> Declaration:
    """Declare Adadelta (Zeiler 2012), whose formula has no rate: leave it at 1.

    Fluid takes a rate and does not use it.
    """
    return declare(specs.Adadelta(rho, epsilon), learning_rate, options)


def RmsProp(
    learning_rate: float | LearningRate,
    rho: float = 0.95,
    epsilon: float = 1e-6,
    momentum: float = 0.0,
    centered: bool = False,
    **options: Unpack[GradientOptions],
) -> Declaration:
    """Declare RMSProp (Tieleman & Hinton 2012), or its centered form (Graves 2013)."""
    return declare(specs.RmsProp(rho, epsilon, momentum, centered), learning_rate, options)


def Adam(
    learning_rate: float | LearningRate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    lazy_mode: bool = True,
    **options: Unpack[GradientOptions],
) -> Declaration:
    """Declare Adam (Kingma & Ba 2015, algorithm 1).

    `lazy_mode` updates touched rows of sparse tables only.
    """
    return declare(specs.Adam(beta1, beta2, epsilon, lazy_mode), learning_rate, options)


def AdamW(
    learning_rate: float | LearningRate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.01,
    lazy_mode: bool = True,
    **options: Unpack[GradientOptions],
) -> Declaration:
    """Declare Adam with decoupled weight decay (Loshchilov & Hutter 2019, algorithm 2)."""
    return declare(
        specs.AdamW(beta1, beta2, epsilon, weight_decay, lazy_mode), learning_rate, options
    )


def Adamax(
    learning_rate: float | LearningRate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    **options: Unpack[GradientOptions],
) -> Declaration:
    """Declare Adam with the largest gradient in place of the mean square (Kingma & Ba 2015)."""
    return declare(specs.Adamax(beta1, beta2, epsilon), learning_rate, options)


def Ftrl(
    learning_rate: float | LearningRate,
    l1: float = 0.0,
    l2: float = 0.0,
    lr_power: float = -0.5,
    initial_accumulator: float = 0.0,
    **options: Unpack[GradientOptions],
) -> Declaration:
    """Declare FTRL-Proximal, which makes sparse weights (McMahan et al. 2013)."""
    return declare(specs.Ftrl(l1, l2, lr_power, initial_accumulator), learning_rate, options)


def LarsMomentum(
    learning_rate: float | LearningRate,
    momentum: float = 0.9,
    lars_coeff: float = 0.001,
    lars_weight_decay: float = 0.0005,
    epsilon: float = 0.0,
    **options: Unpack[GradientOptions],
) -> Declaration:
    """Declare momentum with a rate per parameter, from norms of w and g (You et al. 2017)."""
    return declare(
        specs.LarsMomentum(momentum, lars_coeff, lars_weight_decay, epsilon), learning_rate, options
    )


def Lamb(
    learning_rate: float | LearningRate = 0.001,
    lamb_weight_decay: float = 0.01,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    **options: Unpack[GradientOptions],
) -> Declaration:
    """Declare Adam with a rate per parameter, from norms of w and its update (You et al. 2020)."""
    return declare(specs.Lamb(lamb_weight_decay, beta1, beta2, epsilon), learning_rate, options)


def CtrSgd(
    learning_rate: float | LearningRate = 0.05,
    weight_bounds: tuple[float, float] = (-10.0, 10.0),
    **options: Unpack[GradientOptions],
) -> Declaration:
    """Declare w −= lr · g within bounds, for sparse tables of click models."""
    return declare(specs.CtrSgd(*weight_bounds), learning_rate, options)


def CtrAdagrad(
    learning_rate: float | LearningRate = 0.05,
    initial_g2sum: float = 3.0,
    weight_bounds: tuple[float, float] = (-10.0, 10.0),
    show_scale: bool = True,
    **options: Unpack[GradientOptions],
) -> Declaration:
    """Declare Adagrad within bounds, with one sum of squares per row."""
    spec = specs.CtrAdagrad(initial_g2sum, *weight_bounds, show_scale)
    return declare(spec, learning_rate, options)


def CtrStdAdagrad(
    learning_rate: float | LearningRate = 0.05,
    initial_g2sum: float = 3.0,
    weight_bounds: tuple[float, float] = (-10.0, 10.0),
    show_scale: bool = True,
    **options: Unpack[GradientOptions],
) -> Declaration:
    """Declare Adagrad within bounds, with one sum of squares per weight."""
    spec = specs.CtrStdAdagrad(initial_g2sum, *weight_bounds, show_scale)
    return declare(spec, learning_rate, options)


def CtrAdam(
    learning_rate: float | LearningRate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_bounds: tuple[float, float] = (-10.0, 10.0),
    **options: Unpack[GradientOptions],
) -> Declaration:
    """Declare Adam within bounds; each row counts its own updates."""
    return declare(specs.CtrAdam(beta1, beta2, epsilon, *weight_bounds), learning_rate, options)


def CtrSharedAdam(
    learning_rate: float | LearningRate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_bounds: tuple[float, float] = (-10.0, 10.0),
    **options: Unpack[GradientOptions],
) -> Declaration:
    """Declare `CtrAdam` with two numbers of state per row instead of per weight."""
    spec = specs.CtrSharedAdam(beta1, beta2, epsilon, *weight_bounds)
    return declare(spec, learning_rate, options)


__all__ = ["Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "ConstantRate", "CosineDecay"]
__all__ += ["CtrAdagrad", "CtrAdam", "CtrSgd", "CtrSharedAdam", "CtrStdAdagrad", "DecayedAdagrad"]
__all__ += ["Declaration", "ExponentialDecay", "Ftrl", "InverseTimeDecay", "Lamb", "LarsMomentum"]
__all__ += ["Momentum", "NaturalExpDecay", "NoamDecay", "PiecewiseDecay", "PolynomialDecay"]
__all__ += ["RmsProp", "RowWiseAdagrad", "Sgd", "Warmup"]

if not TYPE_CHECKING:  # type checkers report unknown names themselves
    __getattr__ = refuse_unknown("psrt.optimizer", "optimizer or schedule", __all__)
