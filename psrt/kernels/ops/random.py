"""Random numbers of ops: pure functions of (seed, step, row, position), like initial values.

Counter-based bits (Salmon et al. 2011) need no state, so a step can be repeated, and the replicas
of a batch draw what one executor with all of it would draw.
"""

from __future__ import annotations

import numpy as np

from psrt.core.types import F32, U8
from psrt.kernels.jit import kernel
from psrt.kernels.lowlevel import mix64
from psrt.kernels.tables import random_bits, row_bits

LEVELS = 1 << 16
"""Probabilities are multiples of 1 / LEVELS: four of them are drawn from one hash."""


@kernel("i8, i8, i8, i8, u1[:, ::1] -> void", "op")
def keep_mask(seed: int, step: int, first_row: int, dropped: int, mask: U8) -> None:
    """`mask` (rows, d) = 0 with probability `dropped` / LEVELS, else 1.

    Row i is row `first_row` + i of the whole batch.
    """
    of_step = row_bits(seed, step)
    for i in range(len(mask)):
        row = mix64(of_step ^ np.uint64(first_row + i))
        target = mask[i]
        for j in range(len(target)):
            bits = random_bits(row, j >> 2) >> np.uint64(16 * (j & 3))
            target[j] = (bits & np.uint64(LEVELS - 1)) >= np.uint64(dropped)


@kernel("const f4[::1], const u1[::1], f4, f4[::1] -> void", "op")
def scale_kept(x: F32, mask: U8, scale: float, out: F32) -> None:
    """`out` = `x` · `scale` where `mask` is 1, else 0."""
    for i in range(len(x)):
        out[i] = x[i] * (scale * mask[i])
