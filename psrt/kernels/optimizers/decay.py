"""Changes of a gradient before its update on a pserver: per show, delay compensation, then decay.

In a program regularizers are ops, and give equal bits. Each kernel is
one pass. A gradient from the wire is read-only, so the first pass writes into `out`; a pass over
the table's own gradient works in place, since two names of one array keep the compiler from
vectorising (1 M numbers of L1: 1,010 instead of 550 µs).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from psrt.core.specs import L1Decay, L2Decay, Regularizer
from psrt.core.types import F32, I32
from psrt.kernels.jit import Kernel, device, kernel
from psrt.kernels.lowlevel import AHEAD, prefetch_row


@device
def sign(w: float) -> np.float32:
    """−1, 0 or 1, without a branch that the processor would have to guess."""
    return np.float32(w > 0) - np.float32(w < 0)


@kernel("const f4[::1], const f4[::1], f4, f4[::1] -> void", group="rule")
def l1_decay(g: F32, w: F32, coeff: float, out: F32) -> None:
    """`out` (n,) = g + coeff · sign(w)."""
    for i in range(len(out)):
        out[i] = g[i] + coeff * sign(w[i])


@kernel("const f4[::1], const f4[::1], f4, f4[::1] -> void", group="rule")
def l2_decay(g: F32, w: F32, coeff: float, out: F32) -> None:
    """`out` (n,) = g + coeff · w."""
    for i in range(len(out)):
        out[i] = g[i] + coeff * w[i]


@kernel("f4[::1], const f4[::1], f4 -> void", group="rule")
def l1_decay_(g: F32, w: F32, coeff: float) -> None:
    """g += coeff · sign(w)."""
    for i in range(len(g)):
        g[i] += coeff * sign(w[i])


@kernel("f4[::1], const f4[::1], f4 -> void", group="rule")
def l2_decay_(g: F32, w: F32, coeff: float) -> None:
    """g += coeff · w."""
    for i in range(len(g)):
        g[i] += coeff * w[i]


# Arguments of kernels of rows: gradients (n, d), the slab (m, ·), where weights begin in its rows,
# and for each k the slot whose row gets the gradient `order[k]`.
_ROWS = (
    "const f4[:, ::1], const f4[:, ::1], i8, const i4[::1], const i4[::1], f4, f4[:, ::1] -> void"
)


@kernel(_ROWS, group="rule")
def l1_decay_rows(
    grads: F32, slab: F32, at: int, slots: I32, order: I32, coeff: float, out: F32
) -> None:
    """`out[i]` (n, d) = grads[i] + coeff · sign(its weights) for all i in `order`."""
    for k in range(len(slots)):
        if k + AHEAD < len(slots):
            prefetch_row(slab, int(slots[k + AHEAD]))
        g, w, target = grads[order[k]], slab[slots[k], at:], out[order[k]]
        for j in range(len(target)):
            target[j] = g[j] + coeff * sign(w[j])


@kernel(_ROWS, group="rule")
def l2_decay_rows(
    grads: F32, slab: F32, at: int, slots: I32, order: I32, coeff: float, out: F32
) -> None:
    """`out[i]` (n, d) = grads[i] + coeff · its weights for all i in `order`."""
    for k in range(len(slots)):
        if k + AHEAD < len(slots):
            prefetch_row(slab, int(slots[k + AHEAD]))
        g, w, target = grads[order[k]], slab[slots[k], at:], out[order[k]]
        for j in range(len(target)):
            target[j] = g[j] + coeff * w[j]


@kernel("const f4[::1], const f4[::1], const f4[::1], f4, f4[::1] -> void", group="rule")
def compensate(g: F32, w: F32, pulled: F32, strength: float, out: F32) -> None:
    """`out` (n,) = g + λ · g ⊙ g ⊙ (w − pulled), λ = `strength`: about what a gradient computed at
    `pulled` would be at `w` (DC-ASGD: Zheng et al. 2017, algorithm 2)."""
    for i in range(len(out)):
        out[i] = g[i] + strength * g[i] * g[i] * (w[i] - pulled[i])


# --- regularizer to kernels ---

_KERNELS: dict[type, tuple[Kernel, Kernel, Kernel]] = {
    L1Decay: (l1_decay, l1_decay_, l1_decay_rows),
    L2Decay: (l2_decay, l2_decay_, l2_decay_rows),
}


class Decay(NamedTuple):
    """One regularizer: the kernels for blocks, for blocks in place, and for rows."""

    coeff: float
    block: Kernel
    block_: Kernel
    rows: Kernel

    def of_block(self, g: F32, w: F32, out: F32) -> F32:
        """`g` (n,) with the decay of `w` (n,): `out`, which may be `g` itself."""
        if g is out:
            self.block_(g, w, self.coeff)
        else:
            self.block(g, w, self.coeff, out)
        return out


def decay_of(regularizer: Regularizer | None) -> Decay | None:
    """The kernels of a regularizer, loaded, so that no update waits; None where nothing decays."""
    if regularizer is None or not regularizer.coeff:
        return None
    kernels = _KERNELS[type(regularizer)]
    for each in kernels:
        each.load()
    return Decay(regularizer.coeff, *kernels)


def per_show(gradients: F32, counts: F32) -> F32:
    """Gradients (n, d), each divided by the shows in `counts` (n, 2) if they are positive."""
    shows = counts[:, :1]
    shows = np.where((shows > 0) & (shows < np.inf), shows, np.float32(1))
    scaled: F32 = np.divide(gradients, shows, dtype=np.float32)
    return scaled
