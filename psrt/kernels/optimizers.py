"""Update rules: one device function per optimizer, used for dense blocks and for slab rows.

A slab row is `[header | weights (d) | state (k·d)]` in float32 words. The header's words are read
as int32 through a view of the same memory: word 0 is the table version that touched the row last,
word 1 counts the updates of this row. Callers own the locks; ids and slots are trusted.

State of k·d words: Sgd none; Adagrad m; Adam m, v.
"""

from __future__ import annotations

import math

import numpy as np

from psrt.core.types import F32, I32
from psrt.kernels.jit import device, kernel

HEADER_WORDS = 2
VERSION_WORD = 0
UPDATES_WORD = 1

# Correction tables end where both corrections are 1 in float32, or here (beta2 beyond 0.99998).
_MAX_CORRECTIONS = 1 << 20


@device
def sgd_step_(w: F32, g: F32, lr: float) -> None:
    """w −= lr · g (Robbins & Monro 1951)."""
    for i in range(len(w)):
        w[i] -= lr * g[i]


@device
def adagrad_step_(w: F32, m: F32, g: F32, lr: float, eps: float) -> None:
    """m += g²; w −= lr · g / (√m + eps) (Duchi, Hazan & Singer 2011, diagonal form)."""
    for i in range(len(w)):
        m[i] += g[i] * g[i]
        w[i] -= lr * g[i] / (math.sqrt(m[i]) + eps)


@device
def adam_step_(
    w: F32,
    m: F32,
    v: F32,
    g: F32,
    step_size: float,
    beta1: float,
    beta2: float,
    eps_hat: float,
) -> None:
    """m = β₁m + (1−β₁)g; v = β₂v + (1−β₂)g²; w −= step_size · m / (√v + eps_hat).

    Kingma & Ba 2015, algorithm 1 in the form at the end of its section 2: for update t,
    step_size = lr · √(1−β₂ᵗ) / (1−β₁ᵗ) and eps_hat = eps · √(1−β₂ᵗ), which is exactly
    lr · m̂ / (√v̂ + eps).
    """
    rest1 = np.float32(1.0) - beta1
    rest2 = np.float32(1.0) - beta2
    for i in range(len(w)):
        m[i] = beta1 * m[i] + rest1 * g[i]
        v[i] = beta2 * v[i] + rest2 * (g[i] * g[i])
        w[i] -= step_size * m[i] / (math.sqrt(v[i]) + eps_hat)


def adam_corrections(beta1: float, beta2: float) -> F32:
    """Bias corrections of updates t = 1, 2, …: (T, 2) float32 of √(1−β₂ᵗ)/(1−β₁ᵗ) and √(1−β₂ᵗ).

    Row T − 1 holds for all later updates. Sparse rows look their own t up here: two powers a row
    would cost more than the update itself.
    """
    slowest = max(beta1, beta2)
    needed = 1 if slowest <= 0 else math.ceil(math.log(2.0**-26) / math.log(slowest))
    t = np.arange(1, min(needed, _MAX_CORRECTIONS) + 1, dtype=np.float64)
    root2 = np.sqrt(1.0 - beta2**t)
    return np.stack([root2 / (1.0 - beta1**t), root2], axis=1).astype(np.float32)


def adam_step_size(
    lr: float, beta1: float, beta2: float, eps: float, t: int
) -> tuple[float, float]:
    """(step_size, eps_hat) of update t = 1, 2, … for `adam_`."""
    root2 = math.sqrt(1.0 - beta2**t)
    return lr * root2 / (1.0 - beta1**t), eps * root2


# --- dense blocks ---


@kernel("f4[::1], const f4[::1], f4 -> void", group="pserver trainer")
def sgd_(w: F32, g: F32, lr: float) -> None:
    """`w` (n,) updated by gradient `g` (n,); see `sgd_step_`."""
    sgd_step_(w, g, lr)


@kernel("f4[::1], f4[::1], const f4[::1], f4, f4 -> void", group="pserver trainer")
def adagrad_(w: F32, m: F32, g: F32, lr: float, eps: float) -> None:
    """`w`, `m` (n,) updated by gradient `g` (n,); see `adagrad_step_`."""
    adagrad_step_(w, m, g, lr, eps)


@kernel("f4[::1], f4[::1], f4[::1], const f4[::1], f4, f4, f4, f4 -> void", group="pserver trainer")
def adam_(
    w: F32, m: F32, v: F32, g: F32, step_size: float, beta1: float, beta2: float, eps_hat: float
) -> None:
    """`w`, `m`, `v` (n,) updated by gradient `g` (n,); see `adam_step_` and `adam_step_size`."""
    adam_step_(w, m, v, g, step_size, beta1, beta2, eps_hat)


# --- rows of a slab ---
# Views of each row are passed to the step functions: LLVM then sees unit-stride loops over three
# pointers and vectorises them (about 3 times the speed of indexing the slab in the loop body).


@device
def sgd_row_(row: F32, g: F32, weights_at: int, lr: float) -> None:
    """One slab row (its whole width) and its gradient `g` (d,)."""
    sgd_step_(row[weights_at : weights_at + len(g)], g, lr)


@device
def adagrad_row_(row: F32, g: F32, weights_at: int, lr: float, eps: float) -> None:
    """One slab row (its whole width) and its gradient `g` (d,)."""
    m_at = weights_at + len(g)
    adagrad_step_(row[weights_at:m_at], row[m_at : m_at + len(g)], g, lr, eps)


@device
def adam_row_(
    row: F32,
    g: F32,
    weights_at: int,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    corrections: F32,
    t: int,
) -> None:
    """One slab row (its whole width), its gradient `g` (d,) and the number t ≥ 1 of this update."""
    m_at = weights_at + len(g)
    v_at = m_at + len(g)
    step = min(t, len(corrections)) - 1
    adam_step_(
        row[weights_at:m_at],
        row[m_at:v_at],
        row[v_at : v_at + len(g)],
        g,
        lr * corrections[step, 0],
        beta1,
        beta2,
        eps * corrections[step, 1],
    )


@kernel("f4[:, ::1], const i4[::1], const f4[:, ::1], i8, f4 -> void", group="pserver")
def sgd_rows_(slab: F32, slots: I32, grads: F32, weights_at: int, lr: float) -> None:
    """Rows `slots` (n,) of `slab` (m, words) updated by `grads` (n, d), in order."""
    headers = slab.view(np.int32)
    for i in range(len(slots)):
        headers[slots[i], UPDATES_WORD] += 1
        sgd_row_(slab[slots[i]], grads[i], weights_at, lr)


@kernel("f4[:, ::1], const i4[::1], const f4[:, ::1], i8, f4, f4 -> void", group="pserver")
def adagrad_rows_(
    slab: F32, slots: I32, grads: F32, weights_at: int, lr: float, eps: float
) -> None:
    """Rows `slots` (n,) of `slab` (m, words) updated by `grads` (n, d), in order."""
    headers = slab.view(np.int32)
    for i in range(len(slots)):
        headers[slots[i], UPDATES_WORD] += 1
        adagrad_row_(slab[slots[i]], grads[i], weights_at, lr, eps)


@kernel(
    "f4[:, ::1], const i4[::1], const f4[:, ::1], i8, f4, f4, f4, f4, const f4[:, ::1] -> void",
    group="pserver",
)
def adam_rows_(
    slab: F32,
    slots: I32,
    grads: F32,
    weights_at: int,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    corrections: F32,
) -> None:
    """Rows `slots` (n,) of `slab` (m, words) updated by `grads` (n, d), in order.

    Lazy Adam: t of the bias correction is the row's own count of updates, kept in its header.
    `corrections` comes from `adam_corrections(beta1, beta2)`.
    """
    headers = slab.view(np.int32)
    for i in range(len(slots)):
        headers[slots[i], UPDATES_WORD] += 1
        t = headers[slots[i], UPDATES_WORD]
        adam_row_(slab[slots[i]], grads[i], weights_at, lr, beta1, beta2, eps, corrections, t)
