"""Normalisation layers."""

from __future__ import annotations

import math

from psrt.graph.builder import Layer
from psrt.graph.initializer import Constant
from psrt.graph.layers.elementwise import activate
from psrt.graph.param import Param
from psrt.graph.program import Var


def batch_norm(
    input: Var,
    act: str | None = None,
    is_test: bool = False,
    momentum: float = 0.9,
    epsilon: float = 1e-5,
    param: Param | str | None = None,
    bias: Param | str | None = None,
    moving_mean_name: str = "",
    moving_variance_name: str = "",
    use_global_stats: bool = False,
    condition: Var | None = None,
) -> Var:
    """Batch normalisation scale · (input − mean) / √(variance + epsilon) + bias, per channel.

    `input` is (rows, C) or (rows, C, H, W) (Ioffe & Szegedy 2015, "Batch normalization"). Training
    takes mean and variance of the batch, each trainer and replica those of its own part, and
    updates the running ones: running ← momentum · running + (1 − momentum) · batch, with the biased
    variance, one replica after another. `is_test`, which `program.clone(for_test=True)` sets, and
    `use_global_stats` take the running ones and do not change them. These are untrained parameters
    that no trainer sends: `w_1` starts at 0, `w_2` at 1. Where a `condition`, one bool, is False,
    they stay as they are.
    """
    layer = Layer("batch_norm")
    (x,) = layer.checked("input", input)
    if x.ragged or len(x.shape) not in (2, 4):
        raise layer.error(
            f"argument input is {x.name} of type {x.type}, which is not (rows, channels) or "
            "(rows, channels, height, width)"
        )
    channels = (x.shape[1],)
    mean = Param(moving_mean_name, trainable=False)
    variance = Param(moving_variance_name, trainable=False)
    arguments = {
        "scale": layer.parameter("w_0", channels, param, Constant(1.0)),
        "bias": layer.parameter("b_0", channels, bias, Constant(0.0)),
        "mean": layer.parameter("w_1", channels, mean, Constant(0.0)),
        "variance": layer.parameter("w_2", channels, variance, Constant(1.0)),
    }
    if condition is not None:
        arguments["condition"] = condition
    out = layer.op(
        "batch_norm",
        {"input": x, **arguments},
        momentum=momentum,
        epsilon=epsilon,
        is_test=is_test,
        use_global_stats=use_global_stats,
    )
    return activate(layer, out, act)


def layer_norm(
    input: Var,
    scale: bool = True,
    shift: bool = True,
    begin_norm_axis: int = 1,
    epsilon: float = 1e-5,
    param: Param | str | None = None,
    bias: Param | str | None = None,
    act: str | None = None,
) -> Var:
    """Layer normalisation scale · (input − mean) / √(variance + epsilon) + bias, per row.

    Mean and variance are those of all elements from dimension `begin_norm_axis`, 1 or more, on;
    scale (starts at 1) and bias (at 0) have one number for each of them, flat. A ragged `input`
    stays ragged. Ba et al. 2016, "Layer normalization".
    """
    layer = Layer("layer_norm")
    (x,) = layer.checked("input", input)
    begin_norm_axis = layer.whole("begin_norm_axis", begin_norm_axis)
    if not 1 <= begin_norm_axis < len(x.shape):
        raise layer.error(
            f"argument begin_norm_axis is {begin_norm_axis}, not within 1 to {len(x.shape) - 1}; "
            f"argument input has shape {x.shape}"
        )
    features = (math.prod(x.shape[begin_norm_axis:]),)
    inputs = {"input": [x]}
    if scale:
        inputs["scale"] = [layer.parameter("w_0", features, param, Constant(1.0))]
    if shift:
        inputs["bias"] = [layer.parameter("b_0", features, bias, Constant(0.0))]
    out = layer.op("layer_norm", dict(inputs), axis=begin_norm_axis, epsilon=epsilon)
    return activate(layer, out, act)
