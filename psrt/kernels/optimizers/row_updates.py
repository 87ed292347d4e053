"""Updates of rows: one kernel per optimizer around its formula in `steps`.

A row has weights (d,), a header and state vectors (d,) in the order of the formula. On a pserver
they lie in one slab row `[header | weights | state]`; on a trainer the weights are a row of the
table in the scope, and `[header | state]` a row beside it. So every kernel gets two arrays and says
where in their rows weights and state begin; they may be the same array.

The header's words are read as int32 through a view of the same memory: word 0 is the version of the
table that touched the row last, word 1 counts the updates of this row. It is written before the
kernels here run (`stamp_`, `slab.touch_`), so the count is the t of the update under way.
"""

from __future__ import annotations

import numpy as np

from psrt.core.types import F32, F64, I32
from psrt.kernels.jit import device, kernel
from psrt.kernels.lowlevel import AHEAD, prefetch_row
from psrt.kernels.optimizers import formulas

HEADER_WORDS = 2
VERSION_WORD = 0
UPDATES_WORD = 1

# Arguments of all row kernels: `weights` (m, ·) and where they begin in a row, `state` (m, ·) and
# where it begins, `slots` (n,) of the rows to update, and the gradients: `grads[order[k]]` (d,) is
# for row `slots[k]`. A slot that stands twice is updated twice, in order.
_ROWS = "f4[:, ::1], i8, f4[:, ::1], i8, const i4[::1], const i4[::1], const f4[:, ::1]"


@device
def fetch_ahead(weights: F32, state: F32, slots: I32, k: int) -> None:
    """Fetch the row that this loop reaches `AHEAD` iterations later (13,312 rows of 16 by Adam:
    340 to 250 µs, although the loop that wrote the headers has just read them)."""
    if k + AHEAD < len(slots):
        prefetch_row(weights, int(slots[k + AHEAD]))
        prefetch_row(state, int(slots[k + AHEAD]))


@kernel("const f4[:, ::1], f4[:, ::1], const i4[::1], i8 -> void", group="trainer")
def stamp_(weights: F32, state: F32, slots: I32, version: int) -> None:
    """Write the headers of rows that are about to be updated."""
    headers = state.view(np.int32)
    for k in range(len(slots)):
        fetch_ahead(weights, state, slots, k)
        headers[slots[k], VERSION_WORD] = version
        headers[slots[k], UPDATES_WORD] += 1


@kernel(f"{_ROWS}, f4 -> void", group="rule")
def sgd_rows_(
    weights: F32, at: int, state: F32, state_at: int, slots: I32, order: I32, grads: F32, lr: float
) -> None:
    d = grads.shape[1]
    for k in range(len(slots)):
        fetch_ahead(weights, state, slots, k)
        i, g = slots[k], grads[order[k]]
        formulas.sgd_step_(weights[i, at : at + d], g, lr)


@kernel(f"{_ROWS}, f4, f4, b1 -> void", group="rule")
def momentum_rows_(
    weights: F32,
    at: int,
    state: F32,
    state_at: int,
    slots: I32,
    order: I32,
    grads: F32,
    lr: float,
    momentum: float,
    nesterov: bool,
) -> None:
    d = grads.shape[1]
    for k in range(len(slots)):
        fetch_ahead(weights, state, slots, k)
        i, g = slots[k], grads[order[k]]
        w, v = weights[i, at : at + d], state[i, state_at : state_at + d]
        formulas.momentum_step_(w, v, g, lr, momentum, nesterov)


@kernel(f"{_ROWS}, f4, f4 -> void", group="rule")
def adagrad_rows_(
    weights: F32,
    at: int,
    state: F32,
    state_at: int,
    slots: I32,
    order: I32,
    grads: F32,
    lr: float,
    eps: float,
) -> None:
    d = grads.shape[1]
    for k in range(len(slots)):
        fetch_ahead(weights, state, slots, k)
        i, g = slots[k], grads[order[k]]
        w, m = weights[i, at : at + d], state[i, state_at : state_at + d]
        formulas.adagrad_step_(w, m, g, lr, eps)


@kernel(f"{_ROWS}, f4, f8, f4 -> void", group="rule")
def decayed_adagrad_rows_(
    weights: F32,
    at: int,
    state: F32,
    state_at: int,
    slots: I32,
    order: I32,
    grads: F32,
    lr: float,
    decay: float,
    eps: float,
) -> None:
    d = grads.shape[1]
    for k in range(len(slots)):
        fetch_ahead(weights, state, slots, k)
        i, g = slots[k], grads[order[k]]
        w, m = weights[i, at : at + d], state[i, state_at : state_at + d]
        formulas.decayed_adagrad_step_(w, m, g, lr, decay, eps)


@kernel(f"{_ROWS}, f4, f8, f4 -> void", group="rule")
def adadelta_rows_(
    weights: F32,
    at: int,
    state: F32,
    state_at: int,
    slots: I32,
    order: I32,
    grads: F32,
    lr: float,
    rho: float,
    eps: float,
) -> None:
    d = grads.shape[1]
    for k in range(len(slots)):
        fetch_ahead(weights, state, slots, k)
        i, g = slots[k], grads[order[k]]
        w, a = weights[i, at : at + d], state[i, state_at : state_at + d]
        formulas.adadelta_step_(w, a, state[i, state_at + d : state_at + 2 * d], g, lr, rho, eps)


@kernel(f"{_ROWS}, f4, f8, f4, f4 -> void", group="rule")
def rms_prop_rows_(
    weights: F32,
    at: int,
    state: F32,
    state_at: int,
    slots: I32,
    order: I32,
    grads: F32,
    lr: float,
    rho: float,
    eps: float,
    momentum: float,
) -> None:
    d = grads.shape[1]
    for k in range(len(slots)):
        fetch_ahead(weights, state, slots, k)
        i, g = slots[k], grads[order[k]]
        w, a = weights[i, at : at + d], state[i, state_at : state_at + d]
        formulas.rms_prop_step_(
            w, a, state[i, state_at + d : state_at + 2 * d], g, lr, rho, eps, momentum
        )


@kernel(f"{_ROWS}, f4, f8, f4, f4 -> void", group="rule")
def centered_rms_prop_rows_(
    weights: F32,
    at: int,
    state: F32,
    state_at: int,
    slots: I32,
    order: I32,
    grads: F32,
    lr: float,
    rho: float,
    eps: float,
    momentum: float,
) -> None:
    d = grads.shape[1]
    for k in range(len(slots)):
        fetch_ahead(weights, state, slots, k)
        i, g = slots[k], grads[order[k]]
        w, a = weights[i, at : at + d], state[i, state_at : state_at + d]
        v, c = (
            state[i, state_at + d : state_at + 2 * d],
            state[i, state_at + 2 * d : state_at + 3 * d],
        )
        formulas.centered_rms_prop_step_(w, a, v, c, g, lr, rho, eps, momentum)


@kernel(f"{_ROWS}, f4, f4, f4, f4 -> void", group="rule")
def ftrl_rows_(
    weights: F32,
    at: int,
    state: F32,
    state_at: int,
    slots: I32,
    order: I32,
    grads: F32,
    lr: float,
    l1: float,
    l2: float,
    p: float,
) -> None:
    d = grads.shape[1]
    for k in range(len(slots)):
        fetch_ahead(weights, state, slots, k)
        i, g = slots[k], grads[order[k]]
        w, n = weights[i, at : at + d], state[i, state_at : state_at + d]
        formulas.ftrl_step_(w, n, state[i, state_at + d : state_at + 2 * d], g, lr, l1, l2, p)


@kernel(f"{_ROWS}, f8[::1], f4, f4, f4, f4, f4 -> void", group="rule")
def lars_rows_(
    weights: F32,
    at: int,
    state: F32,
    state_at: int,
    slots: I32,
    order: I32,
    grads: F32,
    lanes: F64,
    lr: float,
    momentum: float,
    coeff: float,
    decay: float,
    eps: float,
) -> None:
    d = grads.shape[1]
    for k in range(len(slots)):
        fetch_ahead(weights, state, slots, k)
        i, g = slots[k], grads[order[k]]
        w, v = weights[i, at : at + d], state[i, state_at : state_at + d]
        formulas.lars_step_(w, v, g, lanes[:d], lr, momentum, coeff, decay, eps)
