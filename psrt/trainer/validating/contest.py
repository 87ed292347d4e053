"""The contest of validations: the best value so far, and when to stop; pure.

value ──better than the best by more than min_delta──▶ best, waited 0
  └───otherwise, or NaN──▶ waited + 1 ──patience reached──▶ training ends
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from psrt.config.sections import ValidationConfig
from psrt.core.errors import ConfigError
from psrt.core.hints import did_you_mean
from psrt.graph.model import Model

LOSS, AUC = "loss", "auc"


@dataclass(frozen=True)
class Standing:
    """The place of one value: `is_best` so far, and training `ends` after it."""

    is_best: bool
    ends: bool


class Contest:
    """Values of one metric in their order; `best` is NaN before the first, and
    `waited` counts those since it. `patience` = 0 never ends a training.
    """

    def __init__(
        self, metric: str, higher: bool, min_delta: float = 0.0, patience: int = 0
    ) -> None:
        self.metric, self._higher = metric, higher
        self._min_delta, self._patience = min_delta, patience
        self.best, self.waited = math.nan, 0

    def copy(self) -> Contest:
        """A contest of the same rules and standing."""
        other = Contest(self.metric, self._higher, self._min_delta, self._patience)
        other.go_on(self.best, self.waited)
        return other

    def go_on(self, best: float, waited: int) -> None:
        """Go on from the standing of an earlier process."""
        self.best, self.waited = best, waited

    def take(self, values: Mapping[str, float]) -> Standing:
        """Compare the metric among the values of the next validation."""
        value = values[self.metric]
        if self._improves(value):
            self.best, self.waited = value, 0
            return Standing(True, False)
        self.waited += 1
        return Standing(False, self.has_ended)

    @property
    def has_ended(self) -> bool:
        """True if patience is used up."""
        return 0 < self._patience <= self.waited

    def _improves(self, value: float) -> bool:
        if math.isnan(value) or math.isnan(self.best):
            return not math.isnan(value)
        gain = value - self.best if self._higher else self.best - value
        return gain > self._min_delta


def contest_of(config: ValidationConfig, model: Model) -> Contest:
    """The contest of a job; raises `ConfigError` for a metric that its model does not have."""
    known = [
        LOSS,
        *([AUC] if model.prediction is not None else []),
        *model.metrics,
        *model.measured,
    ]
    metric = config.metric or (AUC if AUC in known else LOSS)
    if metric not in known:
        raise ConfigError(
            f"[validation] metric is {metric!r}, which the model does not have.",
            hint=did_you_mean(metric, known, f"It has {', '.join(known)}."),
        )
    higher = config.better == "higher" or (not config.better and metric != LOSS)
    return Contest(metric, higher, config.min_delta, config.patience)
