"""Ops that train: role "optimize", one per parameter, or one for many after a pass."""

from __future__ import annotations

from psrt.graph.ops.table import OpCall, Types, define


@define("update", inputs="parameter gradient rate?", outputs="parameter")
def update(call: OpCall) -> Types:
    """Apply `gradient` by the parameter's own optimizer and learning rate, in place.

    A rate that the program computes is `rate`, one number.
    """
    return {"parameter": call.one("parameter")}


@define("updates", inputs="parameter* gradient* rate?", outputs="parameter")
def updates(call: OpCall) -> Types:
    """Apply the gradients of several dense parameters of one optimizer, in order."""
    fits = len(call.many("parameter")) == len(call.many("gradient"))
    call.need(fits, "every parameter needs a gradient")
    return {}
