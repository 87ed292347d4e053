"""A callback of `psrt.fit` that ends a training which no longer improves."""

from __future__ import annotations

from collections.abc import Callable

from psrt.core.errors import ConfigError
from psrt.trainer.measuring import EpochLosses
from psrt.trainer.validating import Contest


def stop_early(
    patience: int = 2, metric: str = "loss", min_delta: float = 0.0, *, higher: bool | None = None
) -> Callable[[EpochLosses], bool]:
    """Return a callback that ends a training after `patience` epochs in a row without a gain.

    `metric` is loss, auc, or a metric of the model, on the validation data; it gains by more than
    `min_delta`. A loss improves downwards, others upwards, unless `higher` is given. Raises
    `ConfigError` at the first epoch that has no validation, or not this metric.
    """
    contest = Contest(metric, metric != "loss" if higher is None else higher, min_delta, patience)

    def after(epoch: EpochLosses) -> bool:
        values = {} if epoch.valid is None else epoch.valid.values()
        if metric not in values:
            raise ConfigError(
                f"psrt.stop_early({metric=}) found no such value after epoch {epoch.epoch}.",
                hint=f"Give psrt.fit validation data; it has {', '.join(values) or 'none'}.",
            )
        return contest.take(values).ends

    return after
