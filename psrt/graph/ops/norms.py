"""Normalisation over the batch or over the features of a row.

These ops also return what their gradients need: the mean and 1 / √(variance + epsilon) used.
"""

from __future__ import annotations

import math

from psrt.graph.ops.table import OpCall, TensorType, Types, define


@define(
    "batch_norm",
    inputs="input scale bias mean variance condition?",
    outputs="out saved_mean saved_inverse mean variance",
)
def batch_norm(call: OpCall) -> Types:
    """out = scale · (input − mean) / √(variance + epsilon) + bias, channel by channel.

    Training takes mean and variance of the batch and updates `mean` and `variance` in place:
    running ← momentum · running + (1 − momentum) · batch; with a `condition` that is False, they
    stay. attrs: momentum, epsilon, is_test and use_global_stats; either of the last two takes the
    running ones unchanged.
    """
    x = call.need_float("input")
    call.need(
        len(x.shape) in (2, 4),
        f"argument input must be (rows, channels) or (rows, channels, height, width), not {x}",
    )
    channels = TensorType((x.shape[1],), x.dtype)
    for slot in ("scale", "bias", "mean", "variance"):
        found = call.one(slot)
        fits = found.shape == channels.shape
        call.need(fits, f"{slot} of shape {found.shape} does not fit input of shape {x.shape}")
    for condition in call.many("condition"):
        fits = condition.dtype == "bool" and condition.shape in ((), (1,))
        call.need(fits, f"argument condition is {condition}, not one bool")
    momentum = call.attrs["momentum"]
    call.need(0 <= momentum <= 1, f"argument momentum is {momentum}, not from 0 to 1")
    _need_epsilon(call)
    return {
        "out": x,
        "saved_mean": channels,
        "saved_inverse": channels,
        "mean": call.one("mean"),
        "variance": call.one("variance"),
    }


@define("layer_norm", inputs="input scale? bias?", outputs="out mean inverse", ragged="input")
def layer_norm(call: OpCall) -> Types:
    """out = scale · (input − mean) / √(variance + epsilon) + bias, scale and bias flat.

    Mean and variance are over the dimensions from attrs["axis"] on. attrs: axis, epsilon.
    """
    x, axis = call.need_float("input"), call.attrs["axis"]
    call.need(
        1 <= axis < len(x.shape),
        f"argument begin_norm_axis {axis} is not within 1 to {len(x.shape) - 1}, "
        f"argument input has shape {x.shape}",
    )
    features = (math.prod(x.shape[axis:]),)
    for slot in ("scale", "bias"):
        for found in call.many(slot):
            fits = found.shape == features
            call.need(fits, f"{slot} of shape {found.shape} is not {features}, input is {x}")
    _need_epsilon(call)
    by_row = x.reshaped(x.shape[:axis])
    return {"out": x, "mean": by_row, "inverse": by_row}


def _need_epsilon(call: OpCall) -> None:
    epsilon = call.attrs["epsilon"]
    call.need(epsilon >= 0, f"argument epsilon is {epsilon}, below 0: variances would be, too")
