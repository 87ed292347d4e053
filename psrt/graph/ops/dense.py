"""Products: fully connected layers, matrix products, dot products of rows.

A product of a batch with a batch may have the shape (ROWS, ROWS): every example against every
example, as in softmax over the batch. Its first dimension counts examples, its second has that size
at run time; ops that need a known size refuse it.
"""

from __future__ import annotations

from psrt.core.types import Shape
from psrt.graph.ops.elementwise import broadcast, need_common_rows
from psrt.graph.ops.table import ANY, ROWS, OpCall, TensorType, Types, define

FUSED_ACTIVATIONS = ("", "relu")


@define("fc", inputs="x* w* bias?", ragged="x")
def fc(call: OpCall) -> Types:
    """out = activation(Σ x_i · w_i + bias) over the last dimension; attrs: activation."""
    xs, ws = call.many("x"), call.many("w")
    call.need(len(xs) == len(ws), f"{len(xs)} inputs do not fit {len(ws)} weights")
    call.need(call.attrs["activation"] in FUSED_ACTIVATIONS, "activation is not a fused one")
    width, first = ws[0].shape[1], xs[0]
    for x, w in zip(xs, ws, strict=True):
        call.need(x.is_float, f"argument input must hold floats, not {x}")
        call.need(len(x.shape) >= 2, f"argument input must have 2 dimensions or more, not {x}")
        fits = x.shape[-1] == w.shape[0] and w.shape[1] == width
        call.need(fits, f"weight of shape {w.shape} does not fit argument input of shape {x.shape}")
        alike = (x.shape[:-1], x.ragged) == (first.shape[:-1], first.ragged)
        call.need(alike, f"argument input has {first} and {x}, which differ in more than the last")
    for bias in call.many("bias"):
        call.need(bias.shape == (width,), f"bias of shape {bias.shape} does not fit width {width}")
    return {"out": first.reshaped((*first.shape[:-1], width))}


def turned(shape: Shape, transpose: bool) -> Shape:
    """`shape` with its last two dimensions exchanged."""
    return (*shape[:-2], shape[-1], shape[-2]) if transpose else shape


@define("matmul", inputs="x y", ragged="x")
def matmul(call: OpCall) -> Types:
    """alpha · x · y over the last two dimensions, those before broadcast.

    attrs: transpose_x, transpose_y, alpha.
    """
    x, y = call.need_float("x"), call.need_float("y")
    for slot, found in (("x", x), ("y", y)):
        call.need(len(found.shape) >= 2, f"argument {slot} must have 2 dimensions, not {found}")
    need_common_rows(call, x, y)
    stays = not x.ragged or len(x.shape) > 2 or not call.attrs["transpose_x"]
    call.need(stays, f"argument x is {x}, whose elements transpose_x would move")
    a = turned(x.shape, call.attrs["transpose_x"])
    b = turned(y.shape, call.attrs["transpose_y"])
    fits = a[-1] == b[-2] or ANY in (a[-1], b[-2])
    call.need(fits, f"argument y of shape {y.shape} does not fit argument x of shape {x.shape}")
    batch = broadcast(x.shape[:-2], y.shape[:-2])
    fits = not x.ragged or len(batch) == len(x.shape) - 2
    call.need(fits, f"argument y is {y}, which adds dimensions before the elements of x, {x}")
    return {"out": x.reshaped((*batch, a[-2], b[-1]))}


@define("dot", inputs="x y", ragged="x y")
def dot(call: OpCall) -> Types:
    """Σ x · y over the last dimension, which becomes 1."""
    x, y = call.need_float("x"), call.need_float("y")
    fits = x == y and len(x.shape) >= 2 and x.shape[-1] != ROWS
    call.need(fits, f"argument y is {y}, argument x is {x}: rows of one size were expected")
    return {"out": TensorType((*x.shape[:-1], 1), x.dtype, x.ragged)}
