"""Drawing classes, and products of an example with the rows of its classes.

A draw is a pure function of (seed, step, example, position), like all randomness in psrt: runs
repeat, and replicas draw what one executor with the whole batch would draw. Draws are with
replacement. Drawing from given probabilities takes one random number and one read of an alias
table (Walker 1977), however many classes there are.
"""

from __future__ import annotations

import math

import numpy as np

from psrt.core.types import F32, F64, I64
from psrt.kernels.jit import device, kernel
from psrt.kernels.lowlevel import mix64
from psrt.kernels.tables import random_bits, row_bits

UNIFORM = 0
LOG_UNIFORM = 1
CUSTOM = 2

SHARED = -1
"""The example of draws that all examples of a step share."""


@device
def fraction(bits: np.uint64) -> float:
    """0 ≤ result < 1, from the upper 53 bits."""
    return np.float64(np.int64(bits >> np.uint64(11))) * 2.0**-53


@device
def _drawn(sampler: int, classes: int, keep: F64, alias: I64, part: float) -> int:
    """The class for the random number `part` in [0, 1)."""
    if sampler == LOG_UNIFORM:
        # P(k) = ln((k + 2) / (k + 1)) / ln(classes + 1), so P(≤ k) = ln(k + 2) / ln(classes + 1).
        return min(int(math.exp(part * math.log(classes + 1.0))) - 1, classes - 1)
    scaled = part * classes
    found = min(int(scaled), classes - 1)
    if sampler == CUSTOM and scaled - found >= keep[found]:
        return int(alias[found])
    return found


@kernel("i8, i8, const f8[::1], const i8[::1], i8, i8, i8, i8, i8[:, ::1] -> void", group="op")
def draw(
    sampler: int,
    classes: int,
    keep: F64,
    alias: I64,
    seed: int,
    step: int,
    first_example: int,
    first_column: int,
    out: I64,
) -> None:
    """`out` (n, k) from column `first_column` on = classes drawn for n examples of one step.

    `keep` and `alias` (classes,) are an alias table for sampler CUSTOM, empty for the others.
    """
    of_step = row_bits(seed, step)
    for i in range(len(out)):
        of_example = mix64(of_step ^ np.uint64(first_example + i))
        for j in range(first_column, out.shape[1]):
            part = fraction(random_bits(of_example, j - first_column))
            out[i, j] = _drawn(sampler, classes, keep, alias, part)


def alias_table(probabilities: F64) -> tuple[F64, I64]:
    """(keep, alias) of a distribution: class i stays i with probability keep[i], else alias[i].

    Vose 1991, "A linear algorithm for generating random numbers with a given distribution".
    """
    scaled = (probabilities * len(probabilities)).tolist()
    keep, alias = [1.0] * len(scaled), list(range(len(scaled)))
    small = [i for i, size in enumerate(scaled) if size < 1.0]
    large = [i for i, size in enumerate(scaled) if size >= 1.0]
    while small and large:
        low, high = small.pop(), large[-1]
        keep[low], alias[low] = scaled[low], high
        scaled[high] -= 1.0 - scaled[low]
        if scaled[high] < 1.0:
            small.append(large.pop())
    return np.array(keep), np.array(alias, np.int64)


# --- the path of a class in a binary tree ---------------------------------------------------------


@kernel("const i8[::1], i8, i8[:, ::1], f4[:, ::1] -> void", group="op")
def tree_paths(labels: I64, classes: int, nodes: I64, signs: F32) -> None:
    """Inner nodes from the leaf of a class up to the root: `nodes`, `signs` (n, longest path).

    Number the nodes of a binary tree from 1 at the root, the children of i being 2i and 2i + 1;
    class c is the leaf c + classes, inner node i has row i − 1 of the parameters. Every number from
    1 to classes − 1 has two children, so each class has a path of its own. The sign is +1 where the
    path goes to the odd child. Shorter paths are filled up with the root, at sign 0.
    """
    for i in range(len(labels)):
        at = labels[i] + classes
        for j in range(nodes.shape[1]):
            signs[i, j] = 0 if at == 1 else 2 * (at & 1) - 1
            at = max(at >> 1, 1)
            nodes[i, j] = at - 1


# --- products of an example with each of its rows -------------------------------------------------


@kernel(
    "const f4[:, ::1], const f4[:, :, ::1], const f4[:, ::1], f4[:, ::1], f4[:, :, ::1] -> void",
    group="trainer",
)
def row_dot_grad(x: F32, w: F32, d: F32, grad_x: F32, grad_w: F32) -> None:
    """Of `x` (n, d) times rows `w` (n, k, d), for d (n, k): `grad_x` = Σ d w, `grad_w` = d x."""
    for i in range(len(x)):
        row, grad_row = x[i], grad_x[i]
        for c in range(len(row)):
            grad_row[c] = 0
        for j in range(w.shape[1]):
            other, grad_other, scale = w[i, j], grad_w[i, j], d[i, j]
            for c in range(len(row)):
                grad_row[c] += scale * other[c]
                grad_other[c] = scale * row[c]


@kernel("f4[:, ::1], i8, const i8[::1], const i8[::1] -> void", group="op")
def exclude_hits_(logits: F32, first_column: int, labels: I64, samples: I64) -> None:
    """Minus infinity in `logits` (n, first_column + k) where sample j (k,) is the label (n,)."""
    for i in range(len(logits)):
        for j in range(len(samples)):
            if samples[j] == labels[i]:
                logits[i, first_column + j] = -np.inf
