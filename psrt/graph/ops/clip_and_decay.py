"""Clipping and regularisation of gradients, between backward and updates.

The gradient of a sparse parameter counts only rows of the step; so does its parameter then.
"""

from __future__ import annotations

from psrt.graph.ops.table import OpCall, TensorType, Types, define


def _same_as_parameter(call: OpCall) -> Types:
    gradient, parameter = call.need_float("gradient"), call.one("parameter")
    fits = gradient.shape == parameter.shape
    call.need(fits, f"argument gradient is {gradient}, argument parameter is {parameter}")
    return {"out": gradient}


@define("l1_decay", inputs="gradient parameter")
def l1_decay(call: OpCall) -> Types:
    """out = gradient + coeff · sign(parameter); attrs: coeff."""
    return _same_as_parameter(call)


@define("l2_decay", inputs="gradient parameter")
def l2_decay(call: OpCall) -> Types:
    """out = gradient + coeff · parameter; attrs: coeff."""
    return _same_as_parameter(call)


@define("clip_gradient_by_value", inputs="gradient")
def clip_gradient_by_value(call: OpCall) -> Types:
    """Cut every element to [min, max]; attrs: min, max."""
    low, high = call.attrs["min"], call.attrs["max"]
    call.need(low <= high, f"min {low} is above max {high}")
    return {"out": call.need_float("gradient")}


@define("clip_gradient_by_norm", inputs="gradient")
def clip_gradient_by_norm(call: OpCall) -> Types:
    """out = gradient · norm / max(norm, ‖gradient‖); attrs: norm."""
    return {"out": _need_norm(call, call.need_float("gradient"))}


@define("global_norm", inputs="gradients*")
def global_norm(call: OpCall) -> Types:
    """√(Σ of the squares of all elements of all gradients), in double precision."""
    for gradient in call.many("gradients"):
        call.need(gradient.is_float, f"argument gradients must hold floats, not {gradient}")
    return {"out": TensorType((), "float64")}


@define("scale_by_global_norm", inputs="gradient global_norm")
def scale_by_global_norm(call: OpCall) -> Types:
    """out = gradient · norm / max(norm, global_norm); attrs: norm."""
    found = call.one("global_norm")
    call.need(found.shape == (), f"argument global_norm must be a scalar, not {found}")
    return {"out": _need_norm(call, call.need_float("gradient"))}


def _need_norm(call: OpCall, gradient: TensorType) -> TensorType:
    call.need(call.attrs["norm"] > 0, f"norm must be positive, not {call.attrs['norm']}")
    return gradient
