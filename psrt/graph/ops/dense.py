"""Fully connected layers."""

from __future__ import annotations

from psrt.graph.ops.table import Call, TensorType, Types, define

FUSED_ACTIVATIONS = ("", "relu")


@define("fc", inputs="x* w* bias?")
def fc(call: Call) -> Types:
    """out = activation(Σ x_i · w_i + bias); attrs: activation, "" or "relu"."""
    xs, ws = call.many("x"), call.many("w")
    call.need(len(xs) == len(ws), f"{len(xs)} inputs do not fit {len(ws)} weights")
    call.need(call.attrs["activation"] in FUSED_ACTIVATIONS, "activation is not a fused one")
    width = ws[0].shape[1]
    for x, w in zip(xs, ws, strict=True):
        call.need(x.is_float, f"argument input must hold floats, not {x}")
        call.need(len(x.shape) == 2, f"argument input must have 2 dimensions, not {x}")
        fits = x.shape[1] == w.shape[0] and w.shape[1] == width
        call.need(fits, f"weight of shape {w.shape} does not fit argument input of shape {x.shape}")
    for bias in call.many("bias"):
        call.need(bias.shape == (width,), f"bias of shape {bias.shape} does not fit width {width}")
    return {"out": TensorType((xs[0].shape[0], width), xs[0].dtype)}
