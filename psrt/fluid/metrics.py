"""Metrics that Python accumulates over batches, from fetched values."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from psrt.core.errors import ProgramError
from psrt.core.types import I64


class MetricBase:
    """Base of metrics that users write: `update`, `eval`, and `reset` where fields need more."""

    def __init__(self, name: str | None = None) -> None:
        self._name = type(self).__name__ if name is None else name

    def __str__(self) -> str:
        return self._name

    def reset(self) -> None:
        """Set the numbers and arrays of the fields without an underscore to 0, others to None."""
        for name, value in vars(self).items():
            if not name.startswith("_"):
                setattr(self, name, _beginning(value))

    def get_config(self) -> dict[str, Any]:
        """Return copies of the fields without an underscore, by name."""
        fields = {name: each for name, each in vars(self).items() if not name.startswith("_")}
        return copy.deepcopy({"name": self._name, "states": fields})

    def update(self, preds: Any, labels: Any) -> None:
        """Raise `NotImplementedError`: a metric has its own."""
        raise NotImplementedError(f"{type(self).__name__} does not implement update.")

    def eval(self) -> Any:
        """Raise `NotImplementedError`: a metric has its own."""
        raise NotImplementedError(f"{type(self).__name__} does not implement eval.")


def _beginning(value: Any) -> Any:
    if isinstance(value, int | float):
        return type(value)(0)
    return np.zeros_like(value) if isinstance(value, np.ndarray | np.generic) else None


class Accuracy:
    """Mean of accuracies, weighted by their number of examples."""

    def __init__(self, name: str | None = None) -> None:
        self.name = name
        self.reset()

    def reset(self) -> None:
        """Forget all updates."""
        self._sum, self._weight = 0.0, 0.0

    def update(self, value: Any, weight: Any) -> None:
        """Add an accuracy, a number or an array of one, of `weight` examples."""
        self._sum += float(np.asarray(value).item()) * float(weight)
        self._weight += float(weight)

    def eval(self) -> float:
        """Return the mean; raises `ProgramError` before the first update."""
        if not self._weight:
            raise ProgramError("metrics.Accuracy has no value before the first update.")
        return self._sum / self._weight


class Auc:
    """Area under the ROC curve, from counts of scores in `num_thresholds` + 1 bins."""

    def __init__(
        self, name: str | None = None, curve: str = "ROC", num_thresholds: int = 4095
    ) -> None:
        if curve != "ROC":
            raise ProgramError(
                f"metrics.Auc has no curve {curve!r}, only ROC.", hint="Use layers.auc(curve='PR')."
            )
        self.name, self._bins = name, num_thresholds + 1
        self.reset()

    def reset(self) -> None:
        """Forget all updates."""
        self._counts: I64 = np.zeros((2, self._bins), np.int64)

    def update(self, preds: Any, labels: Any) -> None:
        """Count scores `preds` (n, 2), class 1 last, or (n, 1), and n `labels` 0 or 1."""
        scores = np.asarray(preds)[:, -1]
        bins = np.clip((scores * (self._bins - 1)).astype(np.int64), 0, self._bins - 1)
        for label in (0, 1):
            self._counts[label] += np.bincount(
                bins[np.asarray(labels).reshape(-1) == label], minlength=self._bins
            )

    def eval(self) -> float:
        """Return the area; NaN while one class is missing."""
        negatives, positives = self._counts[:, ::-1].astype(np.float64)
        pairs = positives.sum() * negatives.sum()
        if not pairs:
            return float("nan")
        above = np.cumsum(positives) - positives / 2
        return float((negatives * above).sum() / pairs)


class _OfClassOne:
    """Counts of predictions of class 1, which are probabilities from 0.5 on."""

    def __init__(self, name: str | None = None) -> None:
        self.name = name
        self.reset()

    def reset(self) -> None:
        """Forget all updates."""
        self._right = self._predicted = self._positive = 0

    def update(self, preds: Any, labels: Any) -> None:
        """Count probabilities `preds` (n, 1) and as many `labels` 0 or 1."""
        predicted = np.rint(np.asarray(preds).reshape(-1)) == 1
        positive = np.asarray(labels).reshape(-1) == 1
        self._right += int((predicted & positive).sum())
        self._predicted += int(predicted.sum())
        self._positive += int(positive.sum())


class Precision(_OfClassOne):
    """Share of right ones among the predictions of class 1."""

    def eval(self) -> float:
        """Return the share; 0 without a prediction of class 1."""
        return self._right / self._predicted if self._predicted else 0.0


class Recall(_OfClassOne):
    """Share of examples of class 1 that were predicted so."""

    def eval(self) -> float:
        """Return the share; 0 without an example of class 1."""
        return self._right / self._positive if self._positive else 0.0


class CompositeMetric:
    """Several metrics of the same predictions."""

    def __init__(self, name: str | None = None) -> None:
        self.name = name
        self._metrics: list[Any] = []

    def add_metric(self, metric: Any) -> None:
        """Add a metric with `update`, `eval` and `reset`."""
        self._metrics.append(metric)

    def reset(self) -> None:
        """Forget all updates."""
        for metric in self._metrics:
            metric.reset()

    def update(self, preds: Any, labels: Any) -> None:
        """Update each metric."""
        for metric in self._metrics:
            metric.update(preds, labels)

    def eval(self) -> list[Any]:
        """Return the value of each metric."""
        return [metric.eval() for metric in self._metrics]


__all__ = ["Accuracy", "Auc", "CompositeMetric", "MetricBase", "Precision", "Recall"]
