"""Updates of rows by the optimizers whose bias correction counts a row's own updates.

As in `optimizer_rows`, with `corrections` from `optimizers.adam_corrections`: update t of a row,
its own count in its header, takes line min(t, lines) of that table. A table of one line gives all
rows the same correction, whatever their count.
"""

from __future__ import annotations

import numpy as np

from psrt.core.types import F32, F64, I32
from psrt.kernels.jit import device, kernel
from psrt.kernels.optimizers import formulas
from psrt.kernels.optimizers.row_updates import UPDATES_WORD, VERSION_WORD, fetch_ahead

_ROWS = "f4[:, ::1], i8, f4[:, ::1], i8, const i4[::1], const i4[::1], const f4[:, ::1]"
_REST = "f4[:, ::1], i8, f4[:, ::1], i8, i8, i8, const f4[::1]"
_CORRECTIONS = "const f4[:, ::1]"


@device
def line_of(corrections: F32, headers: I32, slot: int) -> int:
    line: int = min(headers[slot, UPDATES_WORD], len(corrections)) - 1
    return line


@kernel(f"{_ROWS}, {_CORRECTIONS}, f4, f8, f8, f4 -> void", group="rule")
def adam_rows_(
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
) -> None:
    headers = state.view(np.int32)
    d = grads.shape[1]
    for k in range(len(slots)):
        fetch_ahead(weights, state, slots, k)
        i, g = slots[k], grads[order[k]]
        line = line_of(corrections, headers, i)
        step_size, eps_hat = lr * corrections[line, 0], eps * corrections[line, 1]
        w, m = weights[i, at : at + d], state[i, state_at : state_at + d]
        v = state[i, state_at + d : state_at + 2 * d]
        formulas.adam_step_(w, m, v, g, step_size, beta1, beta2, eps_hat)


@kernel(f"{_ROWS}, {_CORRECTIONS}, f4, f8, f8, f4, f4 -> void", group="rule")
def adamw_rows_(
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
    decay: float,
) -> None:
    headers = state.view(np.int32)
    d = grads.shape[1]
    for k in range(len(slots)):
        fetch_ahead(weights, state, slots, k)
        i, g = slots[k], grads[order[k]]
        line = line_of(corrections, headers, i)
        step_size, eps_hat = lr * corrections[line, 0], eps * corrections[line, 1]
        w, m = weights[i, at : at + d], state[i, state_at : state_at + d]
        v = state[i, state_at + d : state_at + 2 * d]
        formulas.adamw_step_(w, m, v, g, step_size, beta1, beta2, eps_hat, decay)


@kernel(f"{_ROWS}, {_CORRECTIONS}, f4, f8, f4, f4 -> void", group="rule")
def adamax_rows_(
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
) -> None:
    """`corrections` are those of (beta1, 0)."""
    headers = state.view(np.int32)
    d = grads.shape[1]
    for k in range(len(slots)):
        fetch_ahead(weights, state, slots, k)
        i, g = slots[k], grads[order[k]]
        step_size = lr * corrections[line_of(corrections, headers, i), 0]
        w, m = weights[i, at : at + d], state[i, state_at : state_at + d]
        u = state[i, state_at + d : state_at + 2 * d]
        formulas.adamax_step_(w, m, u, g, step_size, beta1, beta2, eps)


@kernel(f"{_ROWS}, f8[::1], {_CORRECTIONS}, f4, f8, f8, f4, f4 -> void", group="rule")
def lamb_rows_(
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
    decay: float,
) -> None:
    headers = state.view(np.int32)
    d = grads.shape[1]
    for k in range(len(slots)):
        fetch_ahead(weights, state, slots, k)
        i, g = slots[k], grads[order[k]]
        line = line_of(corrections, headers, i)
        scale, eps_hat = corrections[line, 0], eps * corrections[line, 1]
        w, m = weights[i, at : at + d], state[i, state_at : state_at + d]
        v, sums = state[i, state_at + d : state_at + 2 * d], lanes[: 2 * d]
        formulas.lamb_step_(w, m, v, g, sums, lr, scale, eps_hat, beta1, beta2, decay)


# --- rows that a gradient did not touch ---


@device
def is_resting(headers: I32, slot: int, version: int) -> bool:
    """Whether a row was updated before, but not by the update that made `version`."""
    rests: bool = headers[slot, UPDATES_WORD] > 0 and headers[slot, VERSION_WORD] != version
    return rests


@kernel(f"{_REST}, f4, f8, f8, f4 -> void", group="rule")
def adam_rest_(
    weights: F32,
    at: int,
    state: F32,
    state_at: int,
    size: int,
    version: int,
    zeros: F32,
    step_size: float,
    beta1: float,
    beta2: float,
    eps_hat: float,
) -> None:
    """The first `size` rows, but for those of `version`, by the gradient `zeros` (d,)."""
    headers = state.view(np.int32)
    d = len(zeros)
    for i in range(size):
        if is_resting(headers, i, version):
            w, m = weights[i, at : at + d], state[i, state_at : state_at + d]
            v = state[i, state_at + d : state_at + 2 * d]
            formulas.adam_step_(w, m, v, zeros, step_size, beta1, beta2, eps_hat)


@kernel(f"{_REST}, f4, f8, f8, f4, f4 -> void", group="rule")
def adamw_rest_(
    weights: F32,
    at: int,
    state: F32,
    state_at: int,
    size: int,
    version: int,
    zeros: F32,
    step_size: float,
    beta1: float,
    beta2: float,
    eps_hat: float,
    decay: float,
) -> None:
    """As `adam_rest_`, by AdamW."""
    headers = state.view(np.int32)
    d = len(zeros)
    for i in range(size):
        if is_resting(headers, i, version):
            w, m = weights[i, at : at + d], state[i, state_at : state_at + d]
            v = state[i, state_at + d : state_at + 2 * d]
            formulas.adamw_step_(w, m, v, zeros, step_size, beta1, beta2, eps_hat, decay)
