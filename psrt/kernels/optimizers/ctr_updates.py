"""Updates of dense blocks and of rows by the optimizers of click models, around `ctr_steps`.

Arguments are those of `optimizers` and `optimizer_rows`. A row that shares its state has one number
of each kind where others have `d`; a dense block has the vector all the same, and uses its first
element.
"""

from __future__ import annotations

import numpy as np

from psrt.core.types import F32, F64, I32
from psrt.kernels.jit import kernel
from psrt.kernels.optimizers import ctr_formulas as steps
from psrt.kernels.optimizers.adam_row_updates import line_of
from psrt.kernels.optimizers.row_updates import fetch_ahead

_W_G = "f4[::1], const f4[::1]"
_W_M_G = "f4[::1], f4[::1], const f4[::1]"
_W_M_V_G = "f4[::1], f4[::1], f4[::1], const f4[::1]"
_ROWS = "f4[:, ::1], i8, f4[:, ::1], i8, const i4[::1], const i4[::1], const f4[:, ::1]"
_CORRECTIONS = "const f4[:, ::1]"

# --- blocks ---


@kernel(f"{_W_G}, f4, f4, f4 -> void", group="rule")
def ctr_sgd_(w: F32, g: F32, lr: float, low: float, high: float) -> None:
    steps.ctr_sgd_step_(w, g, lr, low, high)


@kernel(f"{_W_M_G}, f8[::1], f4, f4, f4, f4 -> void", group="rule")
def ctr_adagrad_(
    w: F32, s: F32, g: F32, lanes: F64, lr: float, g0: float, low: float, high: float
) -> None:
    if len(w):
        steps.ctr_adagrad_step_(w, s, g, lanes, lr, g0, low, high)


@kernel(f"{_W_M_G}, f4, f4, f4, f4 -> void", group="rule")
def ctr_std_adagrad_(w: F32, s: F32, g: F32, lr: float, g0: float, low: float, high: float) -> None:
    steps.ctr_std_adagrad_step_(w, s, g, lr, g0, low, high)


@kernel(f"{_W_M_V_G}, f4, f8, f8, f4, f4, f4 -> void", group="rule")
def ctr_adam_(
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
    steps.ctr_adam_step_(w, m, v, g, step_size, beta1, beta2, eps, low, high)


@kernel(f"{_W_M_V_G}, f8[::1], f4, f8, f8, f4, f4, f4 -> void", group="rule")
def ctr_shared_adam_(
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
    if len(w):
        steps.ctr_shared_adam_step_(w, m, v, g, lanes, step_size, beta1, beta2, eps, low, high)


# --- rows ---


@kernel(f"{_ROWS}, f4, f4, f4 -> void", group="rule")
def ctr_sgd_rows_(
    weights: F32,
    at: int,
    state: F32,
    state_at: int,
    slots: I32,
    order: I32,
    grads: F32,
    lr: float,
    low: float,
    high: float,
) -> None:
    d = grads.shape[1]
    for k in range(len(slots)):
        fetch_ahead(weights, state, slots, k)
        i, g = slots[k], grads[order[k]]
        steps.ctr_sgd_step_(weights[i, at : at + d], g, lr, low, high)


@kernel(f"{_ROWS}, f8[::1], f4, f4, f4, f4 -> void", group="rule")
def ctr_adagrad_rows_(
    weights: F32,
    at: int,
    state: F32,
    state_at: int,
    slots: I32,
    order: I32,
    grads: F32,
    lanes: F64,
    lr: float,
    g0: float,
    low: float,
    high: float,
) -> None:
    d = grads.shape[1]
    for k in range(len(slots)):
        fetch_ahead(weights, state, slots, k)
        i, g = slots[k], grads[order[k]]
        w, s = weights[i, at : at + d], state[i, state_at : state_at + 1]
        steps.ctr_adagrad_step_(w, s, g, lanes[:d], lr, g0, low, high)


@kernel(f"{_ROWS}, f4, f4, f4, f4 -> void", group="rule")
def ctr_std_adagrad_rows_(
    weights: F32,
    at: int,
    state: F32,
    state_at: int,
    slots: I32,
    order: I32,
    grads: F32,
    lr: float,
    g0: float,
    low: float,
    high: float,
) -> None:
    d = grads.shape[1]
    for k in range(len(slots)):
        fetch_ahead(weights, state, slots, k)
        i, g = slots[k], grads[order[k]]
        w, s = weights[i, at : at + d], state[i, state_at : state_at + d]
        steps.ctr_std_adagrad_step_(w, s, g, lr, g0, low, high)


@kernel(f"{_ROWS}, {_CORRECTIONS}, f4, f8, f8, f4, f4, f4 -> void", group="rule")
def ctr_adam_rows_(
    weights: F32,
    at: int,
    state: F32,
    state_at: int,
    slots: I32,
    order: I32,
    grads: F32,
    corrections: F32,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    low: float,
    high: float,
) -> None:
    headers = state.view(np.int32)
    d = grads.shape[1]
    for k in range(len(slots)):
        fetch_ahead(weights, state, slots, k)
        i, g = slots[k], grads[order[k]]
        step_size = lr * corrections[line_of(corrections, headers, i), 0]
        w, m = weights[i, at : at + d], state[i, state_at : state_at + d]
        v = state[i, state_at + d : state_at + 2 * d]
        steps.ctr_adam_step_(w, m, v, g, step_size, beta1, beta2, eps, low, high)


@kernel(f"{_ROWS}, f8[::1], {_CORRECTIONS}, f4, f8, f8, f4, f4, f4 -> void", group="rule")
def ctr_shared_adam_rows_(
    weights: F32,
    at: int,
    state: F32,
    state_at: int,
    slots: I32,
    order: I32,
    grads: F32,
    lanes: F64,
    corrections: F32,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    low: float,
    high: float,
) -> None:
    headers = state.view(np.int32)
    d = grads.shape[1]
    for k in range(len(slots)):
        fetch_ahead(weights, state, slots, k)
        i, g = slots[k], grads[order[k]]
        step_size = lr * corrections[line_of(corrections, headers, i), 0]
        w, m = weights[i, at : at + d], state[i, state_at : state_at + 1]
        v = state[i, state_at + 1 : state_at + 2]
        steps.ctr_shared_adam_step_(w, m, v, g, lanes[:d], step_size, beta1, beta2, eps, low, high)
