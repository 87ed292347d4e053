"""Loss kernels of the trainer, float32: softmax cross-entropy, logistic losses, ranking.

A softmax is two kernels around one `numpy.exp`: `shift`, `exp`, `normalize_` (0.6 ms for 512 × 1000
logits on one thread; numpy alone 0.8, or five times as long as these for 10 classes). Gradient
kernels take d, the gradient of the loss of each example, and write that of the logits. Labels are
trusted: callers have refused those that are no class.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from psrt.core.types import F32, I64
from psrt.kernels.jit import device, kernel
from psrt.kernels.lowlevel import exp_of, log1p_of, sigmoid_of

# --- reductions in eight lanes: one chain of additions does not vectorise -------------------------


@device
def _larger(x: Any, y: Any) -> Any:
    return x if x > y else y


@device
def max_of(x: Any) -> Any:
    """The largest of `x` (n,), n ≥ 1."""
    a = b = c = d = e = f = g = h = x[0]
    whole = len(x) - len(x) % 8
    for i in range(0, whole, 8):
        a, b, c, d = (
            _larger(x[i], a),
            _larger(x[i + 1], b),
            _larger(x[i + 2], c),
            _larger(x[i + 3], d),
        )
        e, f, g, h = (
            _larger(x[i + 4], e),
            _larger(x[i + 5], f),
            _larger(x[i + 6], g),
            _larger(x[i + 7], h),
        )
    for i in range(whole, len(x)):
        a = _larger(x[i], a)
    first = _larger(_larger(a, b), _larger(c, d))
    return _larger(first, _larger(_larger(e, f), _larger(g, h)))


@device
def sum_of(x: Any) -> Any:
    """The sum of `x` (n,)."""
    a = b = c = d = e = f = g = h = np.float32(0.0)
    whole = len(x) - len(x) % 8
    for i in range(0, whole, 8):
        a, b, c, d = a + x[i], b + x[i + 1], c + x[i + 2], d + x[i + 3]
        e, f, g, h = e + x[i + 4], f + x[i + 5], g + x[i + 6], h + x[i + 7]
    for i in range(whole, len(x)):
        a += x[i]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


# --- softmax over the classes of each example -----------------------------------------------------


@kernel("const f4[:, ::1], f4[:, ::1] -> void", group="op")
def shift(logits: F32, out: F32) -> None:
    """`out` (n, c) = `logits` minus the largest of each row, so that no power overflows."""
    for i in range(len(logits)):
        row, target = logits[i], out[i]
        top = max_of(row)
        for j in range(len(row)):
            target[j] = row[j] - top


@kernel("f4[:, ::1], f4[::1] -> void", group="op")
def normalize_(powers: F32, log_sums: F32) -> None:
    """Divide each row of `powers` (n, c) by its sum; `log_sums` (n,) = ln of the sums."""
    for i in range(len(powers)):
        row = powers[i]
        total = sum_of(row)
        log_sums[i] = math.log(total)
        scale = powers.dtype.type(1) / total
        for j in range(len(row)):
            row[j] *= scale


@kernel("const f4[:, ::1], const i8[::1], i8, const f4[::1], f4[:, ::1] -> void", group="op")
def softmax_cross_entropy_grad(
    softmax: F32, labels: I64, ignored: int, d: F32, grad_logits: F32
) -> None:
    """`grad_logits` (n, c) = d (softmax − onehot(label)), 0 where the label is `ignored`.

    `grad_logits` may be `softmax`.
    """
    for i in range(len(softmax)):
        row, target, label = softmax[i], grad_logits[i], labels[i]
        scale = d[i] if label != ignored else np.float32(0.0)
        for j in range(len(row)):
            target[j] = row[j] * scale
        if label != ignored:
            target[label] -= scale


# --- logistic losses of several logits an example -------------------------------------------------


@device
def softplus_of(x: Any) -> Any:
    """ln(1 + eˣ), which does not overflow."""
    return np.float32(0.5) * (x + abs(x)) + log1p_of(exp_of(-abs(x)))


@kernel("const f4[:, ::1], const f4[:, ::1], f4[::1] -> void", group="op")
def signed_logistic(logits: F32, signs: F32, loss: F32) -> None:
    """`loss` (n,) = Σ ln(1 + e^(−s x)) over logits x (n, k) with signs s = ±1, or 0 for none."""
    for i in range(len(logits)):
        total = loss.dtype.type(0)
        for j in range(logits.shape[1]):
            if signs[i, j] != 0:
                x = signs[i, j] * logits[i, j]
                total += softplus_of(-x)
        loss[i] = total


@kernel("const f4[:, ::1], const f4[:, ::1], const f4[::1], f4[:, ::1] -> void", group="op")
def signed_logistic_grad(logits: F32, signs: F32, d: F32, grad_logits: F32) -> None:
    """`grad_logits` (n, k) = −d s σ(−s x)."""
    for i in range(len(logits)):
        for j in range(logits.shape[1]):
            sign = signs[i, j]
            grad_logits[i, j] = -d[i] * sign * sigmoid_of(-sign * logits[i, j])


# --- ranking --------------------------------------------------------------------------------------


@kernel("const f4[:, ::1], const i8[::1], f4[::1] -> void", group="op")
def bayesian_ranking(scores: F32, labels: I64, loss: F32) -> None:
    """`loss` (n,) = the mean of −ln σ(x_label − x_j) over the classes j other than the label."""
    for i in range(len(scores)):
        row, label = scores[i], labels[i]
        total = loss.dtype.type(0)
        for j in range(len(row)):
            if j != label:
                x = row[label] - row[j]
                total += softplus_of(-x)
        loss[i] = total / np.float32(len(row) - 1)


@kernel("const f4[:, ::1], const i8[::1], const f4[::1], f4[:, ::1] -> void", group="op")
def bayesian_ranking_grad(scores: F32, labels: I64, d: F32, grad_scores: F32) -> None:
    """`grad_scores` (n, c) = d σ(x_j − x_label) / (c − 1), and at the label minus their sum."""
    for i in range(len(scores)):
        row, target, label = scores[i], grad_scores[i], labels[i]
        scale, total = d[i] / np.float32(len(row) - 1), np.float32(0.0)
        for j in range(len(row)):
            part = np.float32(0.0)
            if j != label:
                part = scale * sigmoid_of(row[j] - row[label])
            target[j] = part
            total += part
        target[label] = -total
