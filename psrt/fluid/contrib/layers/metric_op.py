"""Sums over all examples since the startup program, from which metrics are computed."""

from __future__ import annotations

from typing import Any

from psrt.fluid.framework import default_main_program
from psrt.fluid.layers import LAYERS
from psrt.fluid.names import Variable
from psrt.graph import layers as psrt_layers


def ctr_metric_bundle(input: Variable, label: Variable) -> tuple[Variable, ...]:
    """Return running sums, float32 (1,) each: squared errors, absolute errors, predictions, their
    sigmoids (q), labels, and examples.

    `input` and `label` (rows, 1) are probabilities and 0 or 1. Divided by the number of examples
    they are metrics; `FleetUtil.get_global_metrics` computes those of all workers.
    """
    label = LAYERS["cast"](label, "float32")
    error = input - label
    parts = [
        error * error,
        LAYERS["abs"](error),
        input,
        LAYERS["sigmoid"](input),
        label,
        _called(psrt_layers.ones_like, label),
    ]
    return tuple(_summed(part) for part in parts)


def _summed(part: Variable) -> Variable:
    """A var that keeps the sum of `part` over all batches."""
    total = LAYERS["create_global_var"]([1], 0.0, "float32", persistable=True)
    of_batch = LAYERS["reshape"](LAYERS["reduce_sum"](part), [1])
    made: Variable = LAYERS["assign"](total + of_batch, total)
    return made


def _called(function: Any, *args: Any) -> Variable:
    made: Variable = default_main_program().call(function, *args)
    return made


__all__ = ["ctr_metric_bundle"]
