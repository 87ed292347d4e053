"""Optimizers as plain frozen data: the formula that updates weights, and its numbers.

In the formulas w is a weight, g its gradient, lr the rate of the step; other letters are state of
each weight, which begins at 0 except where stated. Defaults are Fluid's where it has them. On
sparse tables only the rows of a gradient change, with their state, and t counts the updates of the
row. `psrt.kernels` computes them. Public through `psrt.core.specs`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from psrt.core.attributes import PlainFields
from psrt.core.specs.ctr_optimizers import CtrAdagrad, CtrAdam, CtrSgd, CtrSharedAdam, CtrStdAdagrad


@dataclass(frozen=True)
class Sgd(PlainFields):
    """w −= lr · g   (Robbins & Monro 1951)."""


@dataclass(frozen=True)
class Momentum(PlainFields):
    """v = momentum · v + g; w −= lr · v   (Polyak 1964).

    `nesterov`: w −= lr · (g + momentum · v)   (Sutskever et al. 2013).
    """

    momentum: float = 0.9
    nesterov: bool = False


@dataclass(frozen=True)
class Adagrad(PlainFields):
    """m += g²; w −= lr · g / (√m + epsilon)   (Duchi et al. 2011, diagonal form).

    m begins at `initial_accumulator`.
    """

    epsilon: float = 1e-6
    initial_accumulator: float = 0.0


@dataclass(frozen=True)
class RowWiseAdagrad(PlainFields):
    """s += Σ g² / d; w −= lr · g / (√s + epsilon), with one s for all d weights of a row.

    The exact row-wise Adagrad of TorchRec and FBGEMM (Gupta et al. 2014); s begins at
    `initial_accumulator`. For a dense parameter the whole parameter is a row.
    """

    epsilon: float = 1e-8
    initial_accumulator: float = 0.0


@dataclass(frozen=True)
class DecayedAdagrad(PlainFields):
    """m = decay · m + (1 − decay) · g²; w −= lr · g / (√m + epsilon)   (Fluid's own)."""

    decay: float = 0.95
    epsilon: float = 1e-6


@dataclass(frozen=True)
class Adadelta(PlainFields):
    """a = rho · a + (1 − rho) · g²; d = g · √((b + epsilon) / (a + epsilon));
    b = rho · b + (1 − rho) · d²; w −= lr · d   (Zeiler 2012, where lr is 1).
    """

    rho: float = 0.95
    epsilon: float = 1e-6


@dataclass(frozen=True)
class RmsProp(PlainFields):
    """a = rho · a + (1 − rho) · g²; v = momentum · v + lr · g / √(a + epsilon); w −= v.

    Tieleman & Hinton 2012, lecture 6.5, with Fluid's momentum. `centered` divides by
    √(a − c² + epsilon), c = rho · c + (1 − rho) · g (Graves 2013, eq. 38 to 45).
    """

    rho: float = 0.95
    epsilon: float = 1e-6
    momentum: float = 0.0
    centered: bool = False


@dataclass(frozen=True)
class Adam(PlainFields):
    """m = beta1 · m + (1 − beta1) · g; v = beta2 · v + (1 − beta2) · g²;
    w −= lr · (m / (1 − beta1ᵗ)) / (√(v / (1 − beta2ᵗ)) + epsilon)
    (Kingma & Ba 2015, algorithm 1).

    With `lazy`, rows of a sparse table without a gradient do not change. lazy=False updates them
    by the formula with g = 0 and t the number of updates of the table; such an update takes time
    for every row.
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    lazy: bool = True


@dataclass(frozen=True)
class AdamW(PlainFields):
    """Adam, and w −= lr · weight_decay · w with the w before the step
    (Loshchilov & Hutter 2019, algorithm 2).

    `lazy` is that of Adam. A row without any gradient so far keeps its initial value in any case.
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.01
    lazy: bool = True


@dataclass(frozen=True)
class Adamax(PlainFields):
    """m = beta1 · m + (1 − beta1) · g; u = max(beta2 · u + epsilon, |g|);
    w −= lr / (1 − beta1ᵗ) · m / u   (Kingma & Ba 2015, algorithm 2; Fluid's epsilon keeps u > 0).
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8


@dataclass(frozen=True)
class Ftrl(PlainFields):
    """FTRL-Proximal (McMahan et al. 2013, algorithm 1), in Fluid's form, p = −lr_power:

    s = n + g²; z += g − w · (sᵖ − nᵖ) / lr; n = s;
    w = (l1 · sign(z) − z) / (nᵖ / lr + 2 · l2) where |z| > l1, else 0.

    n begins at `initial_accumulator`. A weight whose z never leaves [−l1, l1] becomes 0. A step
    with lr = 0 changes nothing.
    """

    l1: float = 0.0
    l2: float = 0.0
    lr_power: float = -0.5
    initial_accumulator: float = 0.0


@dataclass(frozen=True)
class LarsMomentum(PlainFields):
    """v = momentum · v + r · (g + lars_weight_decay · w); w −= v, with the rate of the layer
    r = lr · lars_coeff · ‖w‖ / (‖g‖ + lars_weight_decay · ‖w‖ + epsilon)
    (You, Gitman & Ginsburg 2017, algorithm 1); r = lr where a norm is 0.
    """

    momentum: float = 0.9
    lars_coeff: float = 0.001
    lars_weight_decay: float = 0.0005
    epsilon: float = 0.0


@dataclass(frozen=True)
class Lamb(PlainFields):
    """m, v as Adam's; u = (m / (1 − beta1ᵗ)) / (√(v / (1 − beta2ᵗ)) + epsilon) +
    lamb_weight_decay · w; w −= lr · (‖w‖ / ‖u‖) · u
    (You et al. 2020, algorithm 2); the ratio is 1 where a norm is 0.
    """

    lamb_weight_decay: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-6


@dataclass(frozen=True)
class Add(PlainFields):
    """w += g, whatever the rate: g is a change that was computed elsewhere. Tables of mode Geo."""


Optimizer: TypeAlias = (
    Sgd
    | Momentum
    | Adagrad
    | RowWiseAdagrad
    | DecayedAdagrad
    | Adadelta
    | RmsProp
    | Adam
    | AdamW
    | Adamax
    | Ftrl
    | LarsMomentum
    | Lamb
    | Add
    | CtrSgd
    | CtrAdagrad
    | CtrStdAdagrad
    | CtrAdam
    | CtrSharedAdam
)

LAYER_WISE = (LarsMomentum, Lamb, RowWiseAdagrad, CtrAdagrad, CtrSharedAdam)
"""Optimizers that use norms or means of the whole parameter, which is then not cut into blocks; in
sparse tables, of the row."""


def moves_all_rows(optimizer: Optimizer) -> bool:
    """True if an update of a sparse table also changes rows without a gradient."""
    return isinstance(optimizer, Adam | AdamW) and not optimizer.lazy


def scales_by_shows(optimizer: Optimizer) -> bool:
    """True if a row's gradient is divided by the shows that were pushed with it."""
    return isinstance(optimizer, CtrAdagrad | CtrStdAdagrad) and optimizer.show_scale


def without_show_scale(optimizer: Optimizer) -> Optimizer:
    """Return the optimizer for gradients that are divided by their shows already."""
    if isinstance(optimizer, CtrAdagrad | CtrStdAdagrad):
        return replace(optimizer, show_scale=False)
    return optimizer
