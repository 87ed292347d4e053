"""Bias corrections of the first updates by Adam and its variants (Kingma & Ba 2015, section 3)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from psrt.core.types import Array

# Correction tables end where both corrections are 1 to half the last digit, or here (beta2 beyond
# 0.99998).
_MAX_CORRECTIONS = 1 << 20


def adam_corrections(beta1: float, beta2: float, dtype: Any = np.float32) -> Array:
    """Bias corrections of updates t = 1, 2, …: (T, 2) of √(1−β₂ᵗ)/(1−β₁ᵗ) and √(1−β₂ᵗ).

    Row T − 1 holds for all later updates. Sparse rows read the line of their own t here: two powers
    a row would cost more than the update itself.
    """
    slowest = max(beta1, beta2)
    least = float(np.finfo(dtype).eps) / 8
    needed = 1 if slowest <= 0 else math.ceil(math.log(least) / math.log(slowest))
    t = np.arange(1, min(needed, _MAX_CORRECTIONS) + 1, dtype=np.float64)
    root2 = np.sqrt(1.0 - beta2**t)
    return np.stack([root2 / (1.0 - beta1**t), root2], axis=1).astype(dtype)


def adam_step_size(
    lr: float, beta1: float, beta2: float, eps: float, t: int
) -> tuple[float, float]:
    """(step_size, eps_hat) of update t = 1, 2, … for `formulas.adam_step_`."""
    root2 = math.sqrt(1.0 - beta2**t)
    return lr * root2 / (1.0 - beta1**t), eps * root2


class RowCorrections:
    """Bias corrections for a table's rows: by each row's own count if `lazy`, else by the table's.

    A table of one line gives all rows one correction, whatever their count.
    """

    def __init__(self, beta1: float, beta2: float, lazy: bool, dtype: Any) -> None:
        self._all = adam_corrections(beta1, beta2, dtype)
        self._lazy = lazy

    def at_update(self, t: int) -> Array:
        """The corrections (lines, 2) for the t-th update of the table."""
        if self._lazy:
            return self._all
        line = min(t, len(self._all)) - 1
        return self._all[line : line + 1]
