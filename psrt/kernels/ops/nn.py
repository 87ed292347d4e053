"""Fused element-wise steps of the trainer's forward and backward pass, float32.

Matrix products stay with BLAS; these are the loops around them that numpy would run as three or
four passes over memory. Arrays are flat unless a shape is given: callers pass `x.reshape(-1)`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.core.types import F32, I64
from psrt.kernels.jit import device, kernel
from psrt.kernels.lowlevel import exp_of, log1p_of, sigmoid_of


@device
def bias_(x: F32, bias: F32) -> None:
    """`x` (n, d) += `bias` (d,)."""
    for i in range(len(x)):
        row = x[i]
        for j in range(len(bias)):
            row[j] += bias[j]


@device
def bias_relu_(x: F32, bias: F32) -> None:
    """`x` (n, d) = max(x + `bias` (d,), 0)."""
    for i in range(len(x)):
        row = x[i]
        for j in range(len(bias)):
            value = row[j] + bias[j]
            row[j] = np.float32(0.0) if value < 0 else value


@device
def relu_(x: F32) -> None:
    """`x` = max(x, 0) in place."""
    for i in range(len(x)):
        x[i] = np.float32(0.0) if x[i] < 0 else x[i]


@kernel("const f4[::1], f4[::1] -> void", group="op")
def relu(x: F32, out: F32) -> None:
    """`out` = max(x, 0), NaN for NaN (numpy's maximum takes five times as long)."""
    for i in range(len(x)):
        value = x[i]
        out[i] = np.float32(0.0) if value < 0 else value


@kernel("const f4[::1], const f4[::1], f4[::1] -> void", group="op")
def relu_grad(out: F32, grad_out: F32, grad_x: F32) -> None:
    """`grad_x` = `grad_out` where the relu's `out` is positive, else 0."""
    for i in range(len(out)):
        grad_x[i] = grad_out[i] if out[i] > 0 else np.float32(0.0)


@device
def column_sums(x: F32, sums: F32) -> None:
    """`sums` (d,) of `x` (n, d), in order of rows."""
    sums[:] = 0.0
    for i in range(len(x)):
        row = x[i]
        for j in range(len(sums)):
            sums[j] += row[j]


@device
def relu_grad_sums(out: F32, grad_out: F32, grad_x: F32, sums: F32) -> None:
    """`relu_grad` and `column_sums` of it, in one pass: the gradients of relu and bias."""
    sums[:] = 0.0
    for i in range(len(out)):
        row, given, masked = out[i], grad_out[i], grad_x[i]
        for j in range(len(sums)):
            value = given[j] if row[j] > 0 else np.float32(0.0)
            masked[j] = value
            sums[j] += value


@device
def relu_grad_sums_(out: F32, grad: F32, sums: F32) -> None:
    """`relu_grad_sums` in place: two instead of three arrays to move (160 µs for 240)."""
    sums[:] = 0.0
    for i in range(len(out)):
        row, masked = out[i], grad[i]
        for j in range(len(sums)):
            value = masked[j] if row[j] > 0 else np.float32(0.0)
            masked[j] = value
            sums[j] += value


@device
def add_(out: F32, x: F32) -> None:
    """`out` += x."""
    for i in range(len(out)):
        out[i] += x[i]


@device
def multiply(x: F32, y: F32, out: F32) -> None:
    """`out` = x · y."""
    for i in range(len(out)):
        out[i] = x[i] * y[i]


@device
def mean(x: F32, out: F32) -> None:
    """`out` (1,) = Σ x / n, added in float64."""
    total = 0.0
    for i in range(len(x)):
        total += x[i]
    out[0] = total / len(x)


@device
def fill(out: F32, value: F32, divisor: int) -> None:
    """Every element of `out` = `value` (1,) / divisor."""
    each = value[0] / np.float32(divisor)
    for i in range(len(out)):
        out[i] = each


@kernel("const f4[::1], f4[::1] -> void", group="trainer")
def sigmoid(x: F32, out: F32) -> None:
    """`out` = 1 / (1 + e⁻ˣ)."""
    for i in range(len(x)):
        out[i] = sigmoid_of(x[i])


@kernel("const f4[::1], const f4[::1], f4[::1] -> void", group="op")
def sigmoid_grad(out: F32, grad_out: F32, grad_x: F32) -> None:
    """`grad_x` = `grad_out` · out · (1 − out)."""
    for i in range(len(out)):
        grad_x[i] = grad_out[i] * out[i] * (np.float32(1.0) - out[i])


@device
def _linear_loss(x: Any, z: Any) -> Any:
    """max(x, 0) − x·z; for z = 0 and z = 1 of an infinite x too.

    Choices, not branches: these vectorise.
    """
    part = max(x, np.float32(0.0)) - x * z
    part = max(x, np.float32(0.0)) if z == 0 else part
    return max(-x, np.float32(0.0)) if z == 1 else part


@kernel("const f4[::1], const f4[::1], f4[::1] -> void", group="op")
def sigmoid_cross_entropy(logits: F32, labels: F32, loss: F32) -> None:
    """`loss` = max(x, 0) − x·z + ln(1 + e^−|x|) for logit x and label z in [0, 1].

    The form that neither overflows nor loses the small values: −z ln σ(x) − (1−z) ln(1−σ(x)).
    """
    for i in range(len(logits)):
        x = logits[i]
        loss[i] = _linear_loss(x, labels[i]) + log1p_of(exp_of(-abs(x)))


@kernel("const f4[::1], const f4[::1], const f4[::1], f4[::1] -> void", group="op")
def sigmoid_cross_entropy_grad(logits: F32, labels: F32, grad_loss: F32, grad_x: F32) -> None:
    """`grad_x` = (σ(logit) − label) · `grad_loss`."""
    for i in range(len(logits)):
        grad_x[i] = (sigmoid_of(logits[i]) - labels[i]) * grad_loss[i]


@device
def sigmoid_loss(logits: F32, labels: F32, loss: F32, slope: F32) -> None:
    """Both of the above: `loss`, and `slope` = σ(logit) − label."""
    for i in range(len(logits)):
        x = logits[i]
        loss[i] = _linear_loss(x, labels[i]) + log1p_of(exp_of(-abs(x)))
    for i in range(len(logits)):
        slope[i] = sigmoid_of(logits[i]) - labels[i]


@kernel("i8[::1], i8[::1], const f4[::1], const f4[::1] -> void", group="trainer")
def auc_update_(positives: I64, negatives: I64, probabilities: F32, labels: F32) -> None:
    """Count predictions by bucket: `positives`, `negatives` (buckets,) int64.

    Probability p falls into bucket ⌊p · buckets⌋, cut to the range; NaN counts as 0. Labels above
    0.5 are positive. `auc` turns the counts into the area under the ROC curve.
    """
    buckets = len(positives)
    for i in range(len(probabilities)):
        scaled = probabilities[i] * np.float32(buckets)
        bucket = 0
        if scaled >= buckets:
            bucket = buckets - 1
        elif scaled > 0:
            bucket = int(scaled)
        if labels[i] > 0.5:
            positives[bucket] += 1
        else:
            negatives[bucket] += 1


@kernel("const i8[::1], const i8[::1] -> f8", group="trainer")
def auc(positives: I64, negatives: I64) -> float:
    """Area under the ROC curve of bucket counts (trapezoids); NaN while one class is missing.

    It is the probability that a positive scores above a negative, ties counting half (Fawcett
    2006, "An introduction to ROC analysis", algorithm 2).
    """
    area, hits, below = 0.0, 0, 0
    for bucket in range(len(positives)):
        area += positives[bucket] * (below + negatives[bucket] / 2)
        hits += positives[bucket]
        below += negatives[bucket]
    if hits == 0 or below == 0:
        return np.nan
    return area / (float(hits) * float(below))


@device
def _ranks_above(x: float, y: float) -> bool:
    """True if x > y, with NaN above all numbers."""
    return x > y or (x != x and y == y)


@kernel("const f4[:, ::1], f4[:, ::1], i8[:, ::1] -> void", group="op")
def topk(x: F32, values: F32, indices: I64) -> None:
    """The largest of each row of `x` (n, d): `values` (n, k) falling, `indices` (n, k) int64.

    Insertion into k sorted places; of equal ones the first comes first, and NaN counts as the
    largest, as in numpy's sort and argmax. k ≤ d.
    """
    k = values.shape[1]
    for i in range(len(x)):
        for j in range(x.shape[1]):
            value, at = x[i, j], min(j, k - 1)
            if j >= k and not _ranks_above(value, values[i, at]):
                continue
            while at > 0 and _ranks_above(value, values[i, at - 1]):
                values[i, at], indices[i, at] = values[i, at - 1], indices[i, at - 1]
                at -= 1
            values[i, at], indices[i, at] = value, j
