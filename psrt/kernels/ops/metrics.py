"""Counting for metrics."""

from __future__ import annotations

import math

import numpy as np

from psrt.core.types import F32, I64
from psrt.kernels.jit import kernel


@kernel("const f4[:, ::1], const i8[::1], i8 -> i8", group="op")
def count_in_top(scores: F32, labels: I64, k: int) -> int:
    """The number of `labels` (n,) among the k highest `scores` (n, c) of their row.

    Of equal scores the lower class counts as higher, as in argmax; NaN is above every label.
    """
    count = 0
    for i in range(len(scores)):
        row, label = scores[i], labels[i]
        before = 0
        for j in range(len(row)):
            if not (row[j] <= row[label]) or (row[j] == row[label] and j < label):
                before += 1
        if before < k:
            count += 1
    return count


def average_precision(positives: I64, negatives: I64) -> float:
    """Σ (recall − recall before) · precision over bucket counts, from the highest score down.

    The area under precision over recall without interpolation (for the reason see Davis & Goadrich
    2006); NaN while there is no positive.
    """
    total = positives.sum()
    if total == 0:
        return math.nan
    right = np.cumsum(positives[::-1])
    predicted = np.maximum(right + np.cumsum(negatives[::-1]), 1)
    return float(np.dot(positives[::-1] / total, right / predicted))
