"""The update formulas: one device function per optimizer, for dense blocks and for rows alike.

Arguments: weights `w` (n,), the state vectors (n,) of the optimizer in the order of its letters in
`psrt.core.specs.optimizers`, the gradient `g` (n,), then numbers. Everything but `g` is updated in
place. Loops are bare and element-wise, so that they vectorise and give the same bits however a
block is cut; the two optimizers that take norms (LARS, Lamb) get a whole parameter or a whole row.

Numbers have the type of the weights, except those whose complement 1 − β is also used: they are
float64, see `weights_of_mean`.
"""

from __future__ import annotations

import math

import numpy as np

from psrt.core.types import F32, F64
from psrt.kernels.jit import device
from psrt.kernels.optimizers.elementwise import add_squares_, total, total_squares


@device
def weights_of_mean(like: F32, beta: float) -> tuple[np.float32, np.float32]:
    """(β, 1 − β) in the type of `like`: the parts of the old mean and of the new number.

    Each is rounded separately: 1 − 0.999 of a rounded β would be 1.3e-5 too small.
    """
    return like.dtype.type(beta), like.dtype.type(1.0 - beta)


@device
def sgd_step_(w: F32, g: F32, lr: float) -> None:
    """w −= lr · g (Robbins & Monro 1951)."""
    for i in range(len(w)):
        w[i] -= lr * g[i]


@device
def momentum_step_(w: F32, v: F32, g: F32, lr: float, momentum: float, nesterov: bool) -> None:
    """v = μv + g; w −= lr · v (Polyak 1964), or lr · (g + μv) (Sutskever et al. 2013)."""
    if nesterov:
        for i in range(len(w)):
            v[i] = momentum * v[i] + g[i]
            w[i] -= lr * (g[i] + momentum * v[i])
    else:
        for i in range(len(w)):
            v[i] = momentum * v[i] + g[i]
            w[i] -= lr * v[i]


@device
def adagrad_step_(w: F32, m: F32, g: F32, lr: float, eps: float) -> None:
    """m += g²; w −= lr · g / (√m + eps) (Duchi, Hazan & Singer 2011, diagonal form)."""
    for i in range(len(w)):
        m[i] += g[i] * g[i]
        w[i] -= lr * g[i] / (math.sqrt(m[i]) + eps)


@device
def row_wise_adagrad_step_(w: F32, s: F32, g: F32, lanes: F64, lr: float, eps: float) -> None:
    """s += Σ g² / d; w −= lr · g / (√s + eps) (Gupta, Bengio & Weston 2014, section 2; TorchRec's
    and FBGEMM's exact row-wise Adagrad). s is one number, the first of its array; `lanes` is
    scratch."""
    if len(w):
        s[0] += w.dtype.type(total_squares(g, lanes) / len(w))
        rate = lr / (math.sqrt(s[0]) + eps)
        for i in range(len(w)):
            w[i] -= rate * g[i]


@device
def decayed_adagrad_step_(w: F32, m: F32, g: F32, lr: float, decay: float, eps: float) -> None:
    """m = decay · m + (1−decay)g²; w −= lr · g / (√m + eps)."""
    kept, rest = weights_of_mean(m, decay)
    for i in range(len(w)):
        m[i] = kept * m[i] + rest * (g[i] * g[i])
        w[i] -= lr * g[i] / (math.sqrt(m[i]) + eps)


@device
def adadelta_step_(w: F32, a: F32, b: F32, g: F32, lr: float, rho: float, eps: float) -> None:
    """a = ρa + (1−ρ)g²; d = g · √((b + eps) / (a + eps)); b = ρb + (1−ρ)d²; w −= lr · d
    (Zeiler 2012, algorithm 1)."""
    kept, rest = weights_of_mean(a, rho)
    for i in range(len(w)):
        a[i] = kept * a[i] + rest * (g[i] * g[i])
        delta = g[i] * math.sqrt((b[i] + eps) / (a[i] + eps))
        b[i] = kept * b[i] + rest * (delta * delta)
        w[i] -= lr * delta


@device
def rms_prop_step_(
    w: F32, a: F32, v: F32, g: F32, lr: float, rho: float, eps: float, momentum: float
) -> None:
    """a = ρa + (1−ρ)g²; v = μv + lr · g / √(a + eps); w −= v (Tieleman & Hinton 2012)."""
    kept, rest = weights_of_mean(a, rho)
    for i in range(len(w)):
        a[i] = kept * a[i] + rest * (g[i] * g[i])
        v[i] = momentum * v[i] + lr * g[i] / math.sqrt(a[i] + eps)
        w[i] -= v[i]


@device
def centered_rms_prop_step_(
    w: F32, a: F32, v: F32, c: F32, g: F32, lr: float, rho: float, eps: float, momentum: float
) -> None:
    """`rms_prop_step_` with √(a − c² + eps), c = ρc + (1−ρ)g (Graves 2013).

    a − c² is a variance; rounding must not make it negative.
    """
    kept, rest = weights_of_mean(a, rho)
    for i in range(len(w)):
        a[i] = kept * a[i] + rest * (g[i] * g[i])
        c[i] = kept * c[i] + rest * g[i]
        variance = max(a[i] - c[i] * c[i], w.dtype.type(0.0))
        v[i] = momentum * v[i] + lr * g[i] / math.sqrt(variance + eps)
        w[i] -= v[i]


@device
def moments_step_(m: F32, v: F32, g: F32, beta1: float, beta2: float) -> None:
    """m = β₁m + (1−β₁)g; v = β₂v + (1−β₂)g²."""
    kept1, rest1 = weights_of_mean(m, beta1)
    kept2, rest2 = weights_of_mean(v, beta2)
    for i in range(len(m)):
        m[i] = kept1 * m[i] + rest1 * g[i]
        v[i] = kept2 * v[i] + rest2 * (g[i] * g[i])


@device
def adam_step_(
    w: F32, m: F32, v: F32, g: F32, step_size: float, beta1: float, beta2: float, eps_hat: float
) -> None:
    """m = β₁m + (1−β₁)g; v = β₂v + (1−β₂)g²; w −= step_size · m / (√v + eps_hat).

    Kingma & Ba 2015, algorithm 1 in the form at the end of its section 2: for update t,
    step_size = lr · √(1−β₂ᵗ) / (1−β₁ᵗ) and eps_hat = eps · √(1−β₂ᵗ), which is exactly
    lr · m̂ / (√v̂ + eps).
    """
    kept1, rest1 = weights_of_mean(m, beta1)
    kept2, rest2 = weights_of_mean(v, beta2)
    for i in range(len(w)):
        m[i] = kept1 * m[i] + rest1 * g[i]
        v[i] = kept2 * v[i] + rest2 * (g[i] * g[i])
        w[i] -= step_size * m[i] / (math.sqrt(v[i]) + eps_hat)


@device
def adamw_step_(
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
    """`adam_step_`, and also w −= decay · w, where decay is lr · weight_decay
    (Loshchilov & Hutter 2019, algorithm 2)."""
    kept1, rest1 = weights_of_mean(m, beta1)
    kept2, rest2 = weights_of_mean(v, beta2)
    for i in range(len(w)):
        m[i] = kept1 * m[i] + rest1 * g[i]
        v[i] = kept2 * v[i] + rest2 * (g[i] * g[i])
        w[i] -= step_size * m[i] / (math.sqrt(v[i]) + eps_hat) + decay * w[i]


@device
def adamax_step_(
    w: F32, m: F32, u: F32, g: F32, step_size: float, beta1: float, beta2: float, eps: float
) -> None:
    """m = β₁m + (1−β₁)g; u = max(β₂u + eps, |g|); w −= step_size · m / u
    (Kingma & Ba 2015, algorithm 2), with step_size = lr / (1−β₁ᵗ)."""
    kept1, rest1 = weights_of_mean(m, beta1)
    for i in range(len(w)):
        m[i] = kept1 * m[i] + rest1 * g[i]
        u[i] = max(beta2 * u[i] + eps, abs(g[i]))
        w[i] -= step_size * m[i] / u[i]


@device
def ftrl_step_(w: F32, n: F32, z: F32, g: F32, lr: float, l1: float, l2: float, p: float) -> None:
    """s = n + g²; z += g − w(sᵖ − nᵖ)/lr; n = s; w = (l1 · sign(z) − z) / (nᵖ/lr + 2 · l2) where
    |z| > l1, else 0 (McMahan et al. 2013, algorithm 1, with p = 1/2).

    Nothing moves at lr = 0, by which the formula would divide.
    """
    if lr == 0.0:
        return
    if p == 0.5:
        for i in range(len(w)):
            before = math.sqrt(n[i])
            n[i] += g[i] * g[i]
            after = math.sqrt(n[i])
            z[i] += g[i] - w[i] * ((after - before) / lr)
            w[i] = proximal(z[i], after / lr, l1, l2)
    else:
        for i in range(len(w)):
            before = n[i] ** p
            n[i] += g[i] * g[i]
            after = n[i] ** p
            z[i] += g[i] - w[i] * ((after - before) / lr)
            w[i] = proximal(z[i], after / lr, l1, l2)


@device
def proximal(z: float, curvature: float, l1: float, l2: float) -> float:
    """The w that minimises z·w + curvature · w²/2 + l1·|w| + l2·w²."""
    if abs(z) > l1:
        return (math.copysign(l1, z) - z) / (curvature + (l2 + l2))
    return z - z  # 0 of the type of z, and NaN stays NaN


@device
def lars_step_(
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
    """v = μv + r(g + decay · w); w −= v with r = lr · coeff · ‖w‖ / (‖g‖ + decay · ‖w‖ + eps)
    (You, Gitman & Ginsburg 2017, algorithm 1), r = lr where a norm is 0. `lanes` is scratch."""
    w_norm, g_norm = math.sqrt(total_squares(w, lanes)), math.sqrt(total_squares(g, lanes))
    trust = 1.0
    if w_norm > 0.0 and g_norm > 0.0:
        trust = coeff * w_norm / (g_norm + decay * w_norm + eps)
    rate = w.dtype.type(lr * trust)
    for i in range(len(w)):
        v[i] = momentum * v[i] + rate * (g[i] + decay * w[i])
        w[i] -= v[i]


@device
def lamb_step_(
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
    """m, v of Adam; u = scale · m / (√v + eps_hat) + decay · w; w −= lr · (‖w‖/‖u‖) · u
    (You et al. 2020, algorithm 2), the ratio 1 where a norm is 0. `lanes` is scratch.

    scale and eps_hat are those of `adam_step_` for lr = 1. u is computed twice rather than kept;
    moments and both norms are one pass over memory, a piece of each array at a time.
    """
    half = len(lanes) // 2
    lanes[:] = 0.0
    for start in range(0, len(w), half):
        part = slice(start, min(start + half, len(w)))
        moments_step_(m[part], v[part], g[part], beta1, beta2)
        add_squares_(lanes[:half], w[part])
        add_lamb_squares_(lanes[half:], w[part], m[part], v[part], scale, eps_hat, decay)
    w_norm, u_norm = math.sqrt(total(lanes[:half])), math.sqrt(total(lanes[half:]))
    trust = w_norm / u_norm if w_norm > 0.0 and u_norm > 0.0 else 1.0
    rate = w.dtype.type(lr * trust)
    for i in range(len(w)):
        w[i] -= rate * (scale * m[i] / (math.sqrt(v[i]) + eps_hat) + decay * w[i])


@device
def add_lamb_squares_(
    lanes: F64, w: F32, m: F32, v: F32, scale: float, eps_hat: float, decay: float
) -> None:
    """lanes[i] += u[i]² of `lamb_step_`."""
    for i in range(len(w)):
        u = np.float64(scale * m[i] / (math.sqrt(v[i]) + eps_hat) + decay * w[i])
        lanes[i] += u * u
