"""The vars that measure a model, fetched in every step: loss, prediction, label, metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from psrt.core.tensors import Ragged
from psrt.core.types import F32, I64, Array
from psrt.graph.model import Model
from psrt.kernels.ops import nn

Fetched: TypeAlias = Array | Ragged


Functions: TypeAlias = Mapping[str, Callable[[F32, F32], float]]


@dataclass(frozen=True)
class Scored:
    """The examples of one batch, each array (n,), for measures that take all examples: `functions`
    of probabilities and labels, and AUC by group and weight where those are not None."""

    scores: F32
    labels: F32
    groups: I64 | None
    weights: F32 | None
    functions: Functions


@dataclass(frozen=True)
class Measured:
    """One batch: its loss, (probabilities, labels) if the model has them, its own metrics; its
    examples, if the model has measures that take them."""

    loss: float
    scores: tuple[F32, F32] | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    scored: Scored | None = None


class Outputs:
    """The vars to fetch of a model, and the reading of their values."""

    def __init__(self, model: Model) -> None:
        self._logit = model.prediction_is == "logit"
        self._metrics = list(model.metrics)
        scores = [var.name for var in (model.prediction, model.label) if var is not None]
        self._has_scores = len(scores) == 2
        self._functions, self._measures = model.functions, bool(model.measured)
        self._has_group, self._has_weight = model.group is not None, model.weight is not None
        more = [var.name for var in (model.group, model.weight) if var is not None]
        metrics = [var.name for var in model.metrics.values()]
        self._first_metric = 1 + len(scores) + len(more)
        self.names = [model.loss.name, *scores, *more, *metrics]

    def read(self, fetched: Sequence[Fetched]) -> Measured:
        """Return the measurements of a batch from the arrays of `names`."""
        values = (float(_flat(value)[0]) for value in fetched[self._first_metric :])
        metrics = dict(zip(self._metrics, values, strict=True))
        loss = float(_flat(fetched[0])[0])
        if not self._has_scores:
            return Measured(loss, None, metrics)
        scores = self._probabilities(fetched[1]), _flat(fetched[2])
        scored = self._scored(*scores, list(fetched[3:])) if self._measures else None
        return Measured(loss, scores, metrics, scored)

    def _scored(self, scores: F32, labels: F32, more: list[Fetched]) -> Scored:
        groups = groups_of(more.pop(0)) if self._has_group else None
        weights = _flat(more.pop(0)).copy() if self._has_weight else None
        return Scored(scores.copy(), labels.copy(), groups, weights, self._functions)

    def _probabilities(self, prediction: Fetched) -> F32:
        flat = _flat(prediction)
        if not self._logit:
            return flat
        out = np.empty_like(flat)
        nn.sigmoid(flat, out)
        return out


def groups_of(fetched: Fetched) -> I64:
    """Groups as they are told apart: ids, or the bits of floats."""
    values = fetched.values if isinstance(fetched, Ragged) else fetched
    flat = np.ascontiguousarray(values).reshape(-1)
    if flat.dtype.kind == "f":
        flat = flat.astype(np.float64).view(np.int64)
    return flat.astype(np.int64)


def _flat(fetched: Fetched) -> F32:
    values = fetched.values if isinstance(fetched, Ragged) else fetched
    return np.ascontiguousarray(values, dtype=np.float32).reshape(-1)
