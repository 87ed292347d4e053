"""The vars that measure a model, fetched in every step: loss, prediction, label, metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from psrt.core.tensors import Ragged
from psrt.core.types import F32, Array
from psrt.graph.model import Model
from psrt.kernels.ops import nn

Fetched: TypeAlias = Array | Ragged


@dataclass(frozen=True)
class Measured:
    """One batch: its loss, (probabilities, labels) if the model has them, its own metrics."""

    loss: float
    scores: tuple[F32, F32] | None = None
    metrics: dict[str, float] = field(default_factory=dict)


class Outputs:
    """The vars to fetch of a model, and the reading of their values."""

    def __init__(self, model: Model) -> None:
        self._logit = model.prediction_is == "logit"
        self._metrics = list(model.metrics)
        scores = [var.name for var in (model.prediction, model.label) if var is not None]
        self._has_scores = len(scores) == 2
        self.names = [model.loss.name, *scores, *(var.name for var in model.metrics.values())]

    def read(self, fetched: Sequence[Fetched]) -> Measured:
        """Return the measurements of a batch from the arrays of `names`."""
        first_metric = 3 if self._has_scores else 1
        values = (float(_flat(value)[0]) for value in fetched[first_metric:])
        metrics = dict(zip(self._metrics, values, strict=True))
        loss = float(_flat(fetched[0])[0])
        if not self._has_scores:
            return Measured(loss, None, metrics)
        return Measured(loss, (self._probabilities(fetched[1]), _flat(fetched[2])), metrics)

    def _probabilities(self, prediction: Fetched) -> F32:
        flat = _flat(prediction)
        if not self._logit:
            return flat
        out = np.empty_like(flat)
        nn.sigmoid(flat, out)
        return out


def _flat(fetched: Fetched) -> F32:
    values = fetched.values if isinstance(fetched, Ragged) else fetched
    return np.ascontiguousarray(values, dtype=np.float32).reshape(-1)
