"""Measures of predictions against the labels of their files: `psrt predict --measure`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from psrt.core.errors import ConfigError
from psrt.core.tensors import Ragged
from psrt.core.types import F32, Array
from psrt.data.slots import Batch
from psrt.trainer.inputs import Scored, groups_of
from psrt.trainer.measuring import AucHistogram, ScoredRows
from psrt.trainer.models.model_dir import Prediction


class MeasuredPredictions:
    """AUC, and AUC by group and weight if the model has these, of predicted examples.

    `slots` are the fields of the files, `fetches` what is predicted. Raises `ConfigError` if the
    labels are not among them, or if that is another var.
    """

    def __init__(
        self, prediction: Prediction, slots: Collection[str], fetches: Sequence[str]
    ) -> None:
        if list(fetches) != list(prediction.fetches):
            raise ConfigError(
                f"{', '.join(fetches)} cannot be measured: the prediction of the model is "
                f"{', '.join(prediction.fetches)}.",
                hint="Leave out --measure, or --fetch.",
            )
        if not prediction.label or prediction.label not in slots:
            raise ConfigError(
                f"the predictions cannot be measured: the files have no "
                f"{prediction.label or 'label of the model'}.",
                hint="Leave out --measure, or name files, and --slots, with labels.",
            )
        group, weight = (name if name in slots else "" for name in prediction.measured_by)
        self._by = replace(prediction, group=group, weight=weight)
        self._auc, self._rows = AucHistogram(), ScoredRows()

    def add(self, probabilities: Array | Ragged, batch: Batch) -> None:
        """Count a batch: probabilities (n, 1), and the fields of its lines."""
        scores, labels = _flat(probabilities), _flat(batch[self._by.label])
        groups = groups_of(batch[self._by.group]) if self._by.group else None
        weights = _flat(batch[self._by.weight]) if self._by.weight else None
        self._auc.update(scores, labels)
        self._rows.add(Scored(scores, labels, groups, weights, {}))

    def text(self) -> str:
        """`auc 0.7433  gauc 0.7012`."""
        values = {"auc": self._auc.value(), **self._rows.values()}
        return "  ".join(f"{name} {value:.4f}" for name, value in values.items())


def _flat(values: Array | Ragged) -> F32:
    array = values.values if isinstance(values, Ragged) else values
    return np.array(array, np.float32).reshape(-1)
