"""`fluid.average`: a mean of values that Python accumulates over batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.core.errors import ProgramError


class WeightedAverage:
    """Mean of numbers or arrays, each with a weight."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all values."""
        self._sum: Any = 0.0
        self._weight = 0.0

    def add(self, value: Any, weight: float) -> None:
        """Add a value of this weight."""
        self._sum = self._sum + np.asarray(value, np.float64) * float(weight)
        self._weight += float(weight)

    def eval(self) -> Any:
        """Return the mean; raises `ProgramError` before the first value."""
        if not self._weight:
            raise ProgramError("average.WeightedAverage has no value before the first one.")
        return self._sum / self._weight


__all__ = ["WeightedAverage"]
