"""`fleet.metrics`: metrics over the examples of all workers, from each worker's sums.

A value is an array, a var of the program or its name; those are read in `scope`, or the global one.
Every worker calls each function as often, between two steps.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from psrt.core.types import Array
from psrt.fluid.incubate.fleet.base.util import UtilBase
from psrt.fluid.names import Variable
from psrt.fluid.running import FluidScope, chosen


class FleetMetrics:
    """Metrics by the functions of one fleet; `util` of a call replaces it."""

    def __init__(self, util: UtilBase) -> None:
        self._util = util

    def sum(self, input: Any, scope: FluidScope | None = None, util: Any = None) -> Array:
        """Return the sum over all workers, elementwise."""
        return self._reduced(input, "sum", scope, util)

    def max(self, input: Any, scope: FluidScope | None = None, util: Any = None) -> Array:
        """Return the maximum over all workers, elementwise."""
        return self._reduced(input, "max", scope, util)

    def min(self, input: Any, scope: FluidScope | None = None, util: Any = None) -> Array:
        """Return the minimum over all workers, elementwise."""
        return self._reduced(input, "min", scope, util)

    def acc(
        self, correct: Any, total: Any, scope: FluidScope | None = None, util: Any = None
    ) -> float:
        """Return the share of `correct` examples among `total`; NaN without an example."""
        return self._ratio(correct, total, scope, util)

    def mae(
        self, abserr: Any, total_ins_num: Any, scope: FluidScope | None = None, util: Any = None
    ) -> float:
        """Return the mean absolute error, from sums of errors and of examples."""
        return self._ratio(abserr, total_ins_num, scope, util)

    def mse(
        self, sqrerr: Any, total_ins_num: Any, scope: FluidScope | None = None, util: Any = None
    ) -> float:
        """Return the mean squared error, from sums of squares and of examples."""
        return self._ratio(sqrerr, total_ins_num, scope, util)

    def rmse(
        self, sqrerr: Any, total_ins_num: Any, scope: FluidScope | None = None, util: Any = None
    ) -> float:
        """Return the root of the mean squared error."""
        return math.sqrt(self._ratio(sqrerr, total_ins_num, scope, util))

    def auc(
        self, stat_pos: Any, stat_neg: Any, scope: FluidScope | None = None, util: Any = None
    ) -> float:
        """Return the area under the ROC curve, from counts of examples by score; 0.5 for one class.

        The counts are those of `layers.auc`, by rising score.
        """
        positives = self._reduced(stat_pos, "sum", scope, util).reshape(-1)
        negatives = self._reduced(stat_neg, "sum", scope, util).reshape(-1)
        pairs = float(positives.sum() * negatives.sum())
        if not pairs:
            return 0.5
        below = np.cumsum(negatives) - negatives / 2
        return float((positives * below).sum() / pairs)

    def _ratio(self, part: Any, whole: Any, scope: FluidScope | None, util: Any) -> float:
        sums = [float(self._reduced(x, "sum", scope, util).sum()) for x in (part, whole)]
        return sums[0] / sums[1] if sums[1] else math.nan

    def _reduced(self, input: Any, mode: str, scope: FluidScope | None, util: Any) -> Array:
        if isinstance(input, str | Variable):
            name = input if isinstance(input, str) else input.name
            input = chosen(scope)[name]
        reduced: Array = (util or self._util).all_reduce(np.asarray(input), mode)
        return reduced


__all__ = ["FleetMetrics"]
