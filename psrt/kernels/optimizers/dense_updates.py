"""Updates of dense blocks: one kernel per optimizer around its formula in `steps`.

A kernel takes the weights (n,), the state vectors (n,), the gradient (n,), scratch and numbers, all
for one block. `psrt.kernels.optimizers.registry` says which numbers; callers own the locks.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from psrt.core.types import F32, F64, Array
from psrt.kernels.jit import kernel
from psrt.kernels.optimizers import formulas

# Correction tables end where both corrections are 1 to half the last digit, or here (beta2 beyond
# 0.99998).
_MAX_CORRECTIONS = 1 << 20


def adam_corrections(beta1: float, beta2: float, dtype: Any = np.float32) -> Array:
    """Bias corrections of updates t = 1, 2, …: (T, 2) of √(1−β₂ᵗ)/(1−β₁ᵗ) and √(1−β₂ᵗ).

    Row T − 1 holds for all later updates. Sparse rows look their own t up here: two powers a row
    would cost more than the update itself.
    """
    slowest = max(beta1, beta2)
    least = float(np.finfo(dtype).eps) / 8
    needed = 1 if slowest <= 0 else math.ceil(math.log(least) / math.log(slowest))
    t = np.arange(1, min(needed, _MAX_CORRECTIONS) + 1, dtype=np.float64)
    root2 = np.sqrt(1.0 - beta2**t)
    return np.stack([root2 / (1.0 - beta1**t), root2], axis=1).astype(dtype)


def adam_step_size(
    lr: float, beta1: float, beta2: float, eps: float, t: int
) -> tuple[float, float]:
    """(step_size, eps_hat) of update t = 1, 2, … for `adam_`."""
    root2 = math.sqrt(1.0 - beta2**t)
    return lr * root2 / (1.0 - beta1**t), eps * root2


# --- gradients alone, then with one and two vectors of state ---

_W_G = "f4[::1], const f4[::1]"
_W_M_G = "f4[::1], f4[::1], const f4[::1]"
_W_M_V_G = "f4[::1], f4[::1], f4[::1], const f4[::1]"


@kernel(f"{_W_G}, f4 -> void", group="rule")
def sgd_(w: F32, g: F32, lr: float) -> None:
    """See `steps.sgd_step_`; so for all of these."""
    formulas.sgd_step_(w, g, lr)


@kernel(f"{_W_M_G}, f4, f4, b1 -> void", group="rule")
def momentum_(w: F32, v: F32, g: F32, lr: float, momentum: float, nesterov: bool) -> None:
    formulas.momentum_step_(w, v, g, lr, momentum, nesterov)


@kernel(f"{_W_M_G}, f4, f4 -> void", group="rule")
def adagrad_(w: F32, m: F32, g: F32, lr: float, eps: float) -> None:
    formulas.adagrad_step_(w, m, g, lr, eps)


@kernel(f"{_W_M_G}, f4, f8, f4 -> void", group="rule")
def decayed_adagrad_(w: F32, m: F32, g: F32, lr: float, decay: float, eps: float) -> None:
    formulas.decayed_adagrad_step_(w, m, g, lr, decay, eps)


@kernel(f"{_W_M_V_G}, f4, f8, f4 -> void", group="rule")
def adadelta_(w: F32, a: F32, b: F32, g: F32, lr: float, rho: float, eps: float) -> None:
    formulas.adadelta_step_(w, a, b, g, lr, rho, eps)


@kernel(f"{_W_M_V_G}, f4, f8, f4, f4 -> void", group="rule")
def rms_prop_(
    w: F32, a: F32, v: F32, g: F32, lr: float, rho: float, eps: float, momentum: float
) -> None:
    formulas.rms_prop_step_(w, a, v, g, lr, rho, eps, momentum)


@kernel(f"f4[::1], {_W_M_V_G}, f4, f8, f4, f4 -> void", group="rule")
def centered_rms_prop_(
    w: F32, a: F32, v: F32, c: F32, g: F32, lr: float, rho: float, eps: float, momentum: float
) -> None:
    formulas.centered_rms_prop_step_(w, a, v, c, g, lr, rho, eps, momentum)


@kernel(f"{_W_M_V_G}, f4, f8, f8, f4 -> void", group="rule")
def adam_(
    w: F32, m: F32, v: F32, g: F32, step_size: float, beta1: float, beta2: float, eps_hat: float
) -> None:
    """For step_size and eps_hat see `adam_step_size`."""
    formulas.adam_step_(w, m, v, g, step_size, beta1, beta2, eps_hat)


@kernel(f"{_W_M_V_G}, f4, f8, f8, f4, f4 -> void", group="rule")
def adamw_(
    w: F32,
    m: F32,
    v: F32,
    g: F32,
    step_size: float,
    beta1: float,
    beta2: float,
    eps_hat: float,
    decay: float,
) -> None:
    """For step_size and eps_hat see `adam_step_size`; decay is lr · weight_decay."""
    formulas.adamw_step_(w, m, v, g, step_size, beta1, beta2, eps_hat, decay)


@kernel(f"{_W_M_V_G}, f4, f8, f4, f4 -> void", group="rule")
def adamax_(
    w: F32, m: F32, u: F32, g: F32, step_size: float, beta1: float, beta2: float, eps: float
) -> None:
    formulas.adamax_step_(w, m, u, g, step_size, beta1, beta2, eps)


@kernel(f"{_W_M_V_G}, f4, f4, f4, f4 -> void", group="rule")
def ftrl_(w: F32, n: F32, z: F32, g: F32, lr: float, l1: float, l2: float, p: float) -> None:
    formulas.ftrl_step_(w, n, z, g, lr, l1, l2, p)


# --- optimizers that take norms: of a whole parameter ---


@kernel(f"{_W_M_G}, f8[::1], f4, f4, f4, f4, f4 -> void", group="rule")
def lars_(
    w: F32,
    v: F32,
    g: F32,
    lanes: F64,
    lr: float,
    momentum: float,
    coeff: float,
    decay: float,
    eps: float,
) -> None:
    formulas.lars_step_(w, v, g, lanes, lr, momentum, coeff, decay, eps)


@kernel(f"{_W_M_V_G}, f8[::1], f4, f4, f4, f8, f8, f4 -> void", group="rule")
def lamb_(
    w: F32,
    m: F32,
    v: F32,
    g: F32,
    lanes: F64,
    lr: float,
    scale: float,
    eps_hat: float,
    beta1: float,
    beta2: float,
    decay: float,
) -> None:
    """scale and eps_hat are the `adam_step_size` of rate 1."""
    formulas.lamb_step_(w, m, v, g, lanes, lr, scale, eps_hat, beta1, beta2, decay)
