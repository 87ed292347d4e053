"""The update formulas of click models as device functions, like `formulas`; see
`psrt.core.specs.ctr_optimizers` for the mathematics.

Where a row shares its state, `s`, `m` and `v` are one number: the first element of their arrays.
"""

from __future__ import annotations

import math

import numpy as np

from psrt.core.types import F32, F64
from psrt.kernels.jit import device
from psrt.kernels.optimizers.elementwise import total, total_squares
from psrt.kernels.optimizers.formulas import weights_of_mean


@device
def clip(x: float, low: float, high: float) -> float:
    """`x` within [low, high]; NaN stays NaN, so that a broken gradient stays visible."""
    if x < low:
        return low
    return high if x > high else x


@device
def ctr_sgd_step_(w: F32, g: F32, lr: float, low: float, high: float) -> None:
    for i in range(len(w)):
        w[i] = clip(w[i] - lr * g[i], low, high)


@device
def ctr_adagrad_step_(
    w: F32, s: F32, g: F32, lanes: F64, lr: float, g0: float, low: float, high: float
) -> None:
    """`lanes` is scratch."""
    rate = lr * math.sqrt(g0 / (g0 + s[0]))
    for i in range(len(w)):
        w[i] = clip(w[i] - rate * g[i], low, high)
    if len(w):
        s[0] += w.dtype.type(total_squares(g, lanes) / len(w))


@device
def ctr_std_adagrad_step_(
    w: F32, s: F32, g: F32, lr: float, g0: float, low: float, high: float
) -> None:
    for i in range(len(w)):
        w[i] = clip(w[i] - lr * g[i] * math.sqrt(g0 / (g0 + s[i])), low, high)
        s[i] += g[i] * g[i]


@device
def ctr_adam_step_(
    w: F32,
    m: F32,
    v: F32,
    g: F32,
    step_size: float,
    beta1: float,
    beta2: float,
    eps: float,
    low: float,
    high: float,
) -> None:
    """step_size = lr · √(1−β₂ᵗ) / (1−β₁ᵗ)."""
    kept1, rest1 = weights_of_mean(m, beta1)
    kept2, rest2 = weights_of_mean(v, beta2)
    for i in range(len(w)):
        m[i] = kept1 * m[i] + rest1 * g[i]
        v[i] = kept2 * v[i] + rest2 * (g[i] * g[i])
        w[i] = clip(w[i] - step_size * m[i] / (math.sqrt(v[i]) + eps), low, high)


@device
def ctr_shared_adam_step_(
    w: F32,
    m: F32,
    v: F32,
    g: F32,
    lanes: F64,
    step_size: float,
    beta1: float,
    beta2: float,
    eps: float,
    low: float,
    high: float,
) -> None:
    """m and v become their means over the row, from the sums of g and g²; `lanes` is scratch."""
    kept1, rest1 = weights_of_mean(m, beta1)
    kept2, rest2 = weights_of_mean(v, beta2)
    m_kept, v_kept = kept1 * m[0], kept2 * v[0]
    for i in range(len(w)):
        mean, square = m_kept + rest1 * g[i], v_kept + rest2 * (g[i] * g[i])
        w[i] = clip(w[i] - step_size * mean / (math.sqrt(square) + eps), low, high)
    if len(w):
        m[0] = m_kept + rest1 * w.dtype.type(total_sum(g, lanes) / len(w))
        v[0] = v_kept + rest2 * w.dtype.type(total_squares(g, lanes) / len(w))


@device
def total_sum(x: F32, lanes: F64) -> float:
    """Σ x over `x` (n,) in float64, in the order of `elementwise.total_squares`."""
    lanes[:] = 0.0
    for start in range(0, len(x), len(lanes)):
        stop = min(start + len(lanes), len(x))
        for i in range(start, stop):
            lanes[i - start] += np.float64(x[i])
    return total(lanes)
