"""Area under the ROC curve and mean loss, both in constant memory.

`AucHistogram` counts positives and negatives in fixed buckets of the predicted probability, so 10⁹
examples cost as much memory as 10. With 4096 buckets the area differs from the exact one by less
than the chance that a positive and a negative share a bucket. Called by the training thread only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from psrt.core.errors import DataError
from psrt.core.types import F32, Array
from psrt.kernels.ops import nn
from psrt.trainer.inputs import Measured
from psrt.trainer.measuring.scored_rows import ScoredRows

BUCKETS = 4096
AREAS = ("auc", "gauc", "weighted_auc")


class AucHistogram:
    """Running area under the curve of (probability, label) pairs; labels above 0.5 are positive."""

    def __init__(self, buckets: int = BUCKETS) -> None:
        self._positives = np.zeros(buckets, np.int64)
        self._negatives = np.zeros(buckets, np.int64)

    def update(self, probabilities: F32, labels: F32) -> None:
        """Count one batch of probabilities and labels, both (n,)."""
        nn.auc_update_(self._positives, self._negatives, probabilities, labels)

    def arrays(self) -> dict[str, Array]:
        """A copy of the counts, `auc` (2, buckets)."""
        return {"auc": np.stack([self._positives, self._negatives])}

    def put(self, counts: Array) -> None:
        """Replace the counts by those of `arrays`; raises `ValueError` for other shapes."""
        self._positives[:], self._negatives[:] = counts

    def value(self) -> float:
        """Return the area, ties within a bucket counted as half; NaN while one class is missing."""
        return float(nn.auc(self._positives, self._negatives))


class Mean:
    """Mean of a per-batch mean, weighted by examples; NaN of nothing."""

    def __init__(self) -> None:
        self._sum = 0.0
        self.examples = 0

    def arrays(self) -> dict[str, Array]:
        """`loss` (2,), the sum and the examples."""
        return {"loss": np.array([self._sum, self.examples], np.float64)}

    def put(self, sums: Array) -> None:
        """Replace the sums by those of `arrays`; raises `ValueError` for other shapes."""
        self._sum, examples = sums.tolist()
        self.examples = int(examples)

    def update(self, value: float, examples: int) -> None:
        self._sum += value * examples
        self.examples += examples

    def value(self) -> float:
        return self._sum / self.examples if self.examples else math.nan


class Tally:
    """Loss, AUC and the model's own metrics over some batches.

    AUC stays NaN for a model without a prediction. `rows` has the examples for measures that take
    all of them; None = these are not measured.
    """

    def __init__(self, rows: ScoredRows | None = None) -> None:
        self.loss = Mean()
        self.auc = AucHistogram()
        self._rows, self._metrics = rows, dict[str, float]()

    @property
    def metrics(self) -> dict[str, float]:
        """Metrics of the model, then what it measures over examples.

        The former are values of the last batch: a metric that should cover more counts itself, as
        `layers.auc` does.
        """
        return self._metrics | ({} if self._rows is None else self._rows.values())

    @property
    def examples(self) -> int:
        return self.loss.examples

    def update(self, measured: Measured, examples: int) -> None:
        self.loss.update(measured.loss, examples)
        if measured.scores is not None:
            self.auc.update(*measured.scores)
        self._metrics = measured.metrics
        if self._rows is not None and measured.scored is not None:
            self._rows.add(measured.scored)

    def arrays(self) -> dict[str, Array]:
        """Copies of the sums, for `Tally.of`."""
        return {**self.loss.arrays(), **self.auc.arrays()}

    @classmethod
    def of(cls, arrays: Mapping[str, Array]) -> Tally:
        """A tally that counts on from such sums; raises `DataError` if they are others."""
        tally = cls()
        try:
            tally.loss.put(arrays["loss"])
            tally.auc.put(arrays["auc"])
        except (KeyError, ValueError) as error:
            raise DataError(
                f"the cut has sums of a tally that do not fit: {error}. Nothing was trained.",
                hint="Resume with the program of the job that wrote the cut.",
            ) from error
        return tally

    def values(self) -> dict[str, float]:
        """Loss, AUC and metrics by name; an unknown AUC, also by group or weight, is left out."""
        values = {"loss": self.loss.value(), "auc": self.auc.value(), **self.metrics}
        return {n: v for n, v in values.items() if not (n in AREAS and math.isnan(v))}

    def text(self) -> str:
        """`loss 0.4711  auc 0.7433  accuracy 0.8100`; an unknown AUC is left out."""
        return "  ".join(f"{name} {value:.4f}" for name, value in self.values().items())


def number(value: float) -> float | None:
    """Return None for NaN, which JSON cannot hold."""
    return None if math.isnan(value) else value
