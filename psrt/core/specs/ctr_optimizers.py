"""Optimizers of click models, by the formulas of PaddlePaddle's sparse accessors: frozen data.

They keep every weight within bounds, and a row may share one number of state among its weights. In
the formulas w is a weight, g its gradient, d the number of weights of a row, lr the rate of the
step, and clip() means `min(max(w, weight_min), weight_max)`. State begins at 0. Any sparse table
can have one of them; for a dense parameter the whole parameter is a row.

With `show_scale` the gradient of a row is first divided by the shows of the row in the mini-batches
pushed, if trainers push shows (admission `ShowClick`); otherwise every push counts as one.
"""

from __future__ import annotations

from dataclasses import dataclass

from psrt.core.attributes import PlainFields


@dataclass(frozen=True)
class CtrSgd(PlainFields):
    """w = clip(w − lr · g)   (rule `naive`)."""

    weight_min: float = -10.0
    weight_max: float = 10.0


@dataclass(frozen=True)
class CtrAdagrad(PlainFields):
    """w = clip(w − lr · g · √(g₀ / (g₀ + s))); s += Σ g² / d   (rule `adagrad`).

    g₀ is `initial_g2sum`; one s is shared by all weights of a row, and moves after the weights.
    """

    initial_g2sum: float = 3.0
    weight_min: float = -10.0
    weight_max: float = 10.0
    show_scale: bool = True


@dataclass(frozen=True)
class CtrStdAdagrad(PlainFields):
    """`CtrAdagrad` with an s for every weight: s += g²   (rule `std_adagrad`)."""

    initial_g2sum: float = 3.0
    weight_min: float = -10.0
    weight_max: float = 10.0
    show_scale: bool = True


@dataclass(frozen=True)
class CtrAdam(PlainFields):
    """m = beta1 · m + (1 − beta1) · g; v = beta2 · v + (1 − beta2) · g²;
    w = clip(w − lr · √(1 − beta2ᵗ) / (1 − beta1ᵗ) · m / (√v + epsilon))   (rule `adam`).

    Adam in the form at the end of section 2 of Kingma & Ba 2015: epsilon is not corrected with v.
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_min: float = -10.0
    weight_max: float = 10.0


@dataclass(frozen=True)
class CtrSharedAdam(PlainFields):
    """`CtrAdam` that keeps only the means of m and of v over the row from one update to the next;
    m and v of every weight begin there   (rule `shared_adam`).
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_min: float = -10.0
    weight_max: float = 10.0
