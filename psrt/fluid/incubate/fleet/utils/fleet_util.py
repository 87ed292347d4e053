"""`FleetUtil`: logs of the first worker, and metrics over the examples of all workers."""

from __future__ import annotations

import logging
import math
import re
from typing import Any

import numpy as np

from psrt.core.errors import ConfigError
from psrt.core.types import F64
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from psrt.fluid.running import FluidScope, chosen

log = logging.getLogger("psrt.fluid")

_TITLES = (
    *("AUC", "BUCKET_ERROR", "MAE", "RMSE", "Actual CTR", "Predicted CTR", "COPC"),
    *("MEAN Q_VALUE", "Ins number"),
)

_SPAN, _NEAR = 0.01, 0.05
"""Buckets are joined up to this width, until the error of their rate is below the second."""


class ModeError(ConfigError, ValueError):
    """`FleetUtil` was given another mode."""


class FleetUtil:
    """Helpers over the workers of `fleet`; `mode` "transpiler" or "pslib" means the same fleet."""

    def __init__(self, mode: str = "pslib") -> None:
        if mode not in ("pslib", "transpiler"):
            raise ModeError(f'FleetUtil was given mode {mode!r}, not "pslib" or "transpiler".')

    def rank0_print(self, s: object) -> None:
        """Print on the first worker."""
        if fleet.worker_index() == 0:
            print(s, flush=True)

    def rank0_info(self, s: object) -> None:
        """Log on the first worker."""
        if fleet.worker_index() == 0:
            log.info("%s", s)

    def rank0_error(self, s: object) -> None:
        """Log an error on the first worker."""
        if fleet.worker_index() == 0:
            log.error("%s", s)

    def set_zero(
        self,
        var_name: str,
        scope: FluidScope | None = None,
        place: Any = None,
        param_type: str = "int64",
    ) -> None:
        """Set a var of the scope to zeros of its own dtype; the other arguments have no effect."""
        array = chosen(scope)[var_name]
        chosen(scope)[var_name] = np.zeros_like(array)

    def get_global_auc(
        self,
        scope: FluidScope | None = None,
        stat_pos: str = "_generated_var_2",
        stat_neg: str = "_generated_var_3",
    ) -> float | None:
        """Return the AUC of all workers, from counts of `layers.auc`; None without these vars.

        Every worker calls it as often.
        """
        if stat_pos not in chosen(scope) or stat_neg not in chosen(scope):
            self.rank0_print("not found auc bucket")
            return None
        return float(fleet.metrics.auc(stat_pos, stat_neg, scope))

    def print_global_auc(
        self,
        scope: FluidScope | None = None,
        stat_pos: str = "_generated_var_2",
        stat_neg: str = "_generated_var_3",
        print_prefix: str = "",
    ) -> None:
        """Print `get_global_auc` on the first worker."""
        auc = self.get_global_auc(scope, stat_pos, stat_neg)
        self.rank0_print(f"{print_prefix} global auc = {auc}")

    def get_global_metrics(
        self,
        scope: FluidScope | None = None,
        stat_pos_name: str = "_generated_var_2",
        stat_neg_name: str = "_generated_var_3",
        sqrerr_name: str = "sqrerr",
        abserr_name: str = "abserr",
        prob_name: str = "prob",
        q_name: str = "q",
        pos_ins_num_name: str = "pos",
        total_ins_num_name: str = "total",
    ) -> list[Any]:
        """Return metrics of all workers, from counts of `layers.auc` and `ctr_metric_bundle`.

        They are AUC, error of the rate by bucket, mean absolute error, root of the mean squared
        error, rate of clicks, predicted rate, their ratio, mean q, and the number of examples; None
        each where a var is missing. Every worker calls it as often.
        """
        names = [sqrerr_name, abserr_name, prob_name, q_name, pos_ins_num_name, total_ins_num_name]
        missing = [n for n in (stat_pos_name, stat_neg_name, *names) if n not in chosen(scope)]
        if missing:
            self.rank0_print(f"not found {', '.join(missing)}")
            return [None] * 9
        sums = [float(fleet.metrics.sum(name, scope).sum()) for name in names]
        squares, errors, predicted, q, clicks, total = sums
        counts = [fleet.metrics.sum(name, scope) for name in (stat_pos_name, stat_neg_name)]
        rate, expected = clicks / total, predicted / total
        return [
            self.get_global_auc(scope, stat_pos_name, stat_neg_name),
            bucket_error(counts[0].reshape(-1), counts[1].reshape(-1)),
            errors / total,
            math.sqrt(squares / total),
            rate,
            expected,
            rate / expected if expected > 1e-6 else 0.0,
            q / total,
            int(total),
        ]

    def print_global_metrics(self, *args: Any, print_prefix: str = "", **named: Any) -> None:
        """Print `get_global_metrics`, which takes the same arguments, on the first worker."""
        pairs = zip(_TITLES, self.get_global_metrics(*args, **named), strict=True)
        self.rank0_print(" ".join([print_prefix, *(f"{title}={value}" for title, value in pairs)]))

    def get_online_pass_interval(
        self,
        days: str,
        hours: str,
        split_interval: int | str,
        split_per_pass: int | str,
        is_data_hourly_placed: bool,
    ) -> list[list[str]]:
        """Return the names of the parts of a day's data for each pass, such as "0905".

        `hours` are those to train, "{9..12}" or "9 10"; a part has `split_interval` minutes, and
        `split_per_pass` are one pass. Parts are named by hours with `is_data_hourly_placed`.
        """
        numbers = [int(number) for number in re.findall(r"\d+", hours)]
        minutes = range(0, 24 * 60, int(split_interval))
        wanted = [m for m in minutes if numbers[0] <= m // 60 <= numbers[-1]]
        form = "{:02d}" if is_data_hourly_placed else "{:02d}{:02d}"
        names = [form.format(*divmod(minute, 60)) for minute in wanted]
        size = int(split_per_pass)
        return [names[at : at + size] for at in range(0, len(names) - size + 1, size)]


def bucket_error(positives: F64, negatives: F64) -> float:
    """Return how far the rates of clicks are from predictions, relative to these.

    The counts are by rising prediction. Neighbours are joined until their rate is known to 5 %, and
    count by their examples; what spans more than 0.01 before that is left out.
    """
    begin, shows, predicted, clicks = -1.0, 0.0, 0.0, 0.0
    errors = counted = 0.0
    for at, (positive, negative) in enumerate(zip(positives, negatives, strict=True)):
        prediction = at / len(positives)
        if abs(prediction - begin) > _SPAN:
            begin, shows, predicted, clicks = prediction, 0.0, 0.0, 0.0
        shows += positive + negative
        predicted += prediction * (positive + negative)
        clicks += positive
        mean = predicted / shows if shows else 0.0
        if mean and math.sqrt((1 - mean) / (mean * shows)) < _NEAR:
            errors += abs(clicks / shows / mean - 1) * shows
            counted += shows
            begin = -1.0
    return errors / counted if counted else 0.0


__all__ = ["FleetUtil", "bucket_error"]
