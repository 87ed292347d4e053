"""Convolution and pooling of images (rows, channels, height, width).

Sizes, strides and dilations are pairs (rows, columns), and so is a padding, or it has four numbers
(top, left, bottom, right). Slots have the names of the layers' arguments.
"""

from __future__ import annotations

from typing import TypeAlias

from psrt.core.types import Shape
from psrt.graph.ops.dense import FUSED_ACTIVATIONS
from psrt.graph.ops.table import OpCall, TensorType, Types, define

POOLS = ("max", "average")


Sides: TypeAlias = tuple[int, int]
"""Padding of one dimension: before and behind the image."""


def sides_of(padding: Shape) -> list[Sides]:
    """Padding before and behind, of rows and of columns; that of a pair is equal on both sides."""
    return list(zip(padding[:2], padding[-2:], strict=True))


def convolved_size(size: int, filter_size: int, stride: int, padding: Sides, dilation: int) -> int:
    """⌊(size + padding − dilation (filter − 1) − 1) / stride⌋ + 1; below 1 if it does not fit."""
    return (size + sum(padding) - dilation * (filter_size - 1) - 1) // stride + 1


def pooled_size(size: int, window: int, stride: int, padding: Sides, ceil: bool) -> int:
    """Number of windows; `ceil` counts one that begins inside and ends beyond the edge."""
    room = size + sum(padding) - window
    count = (room + stride - 1 if ceil else room) // stride + 1
    return count - 1 if ceil and (count - 1) * stride >= size + padding[0] else count


def _need_images(call: OpCall) -> TensorType:
    found = call.need_float("input")
    fits = len(found.shape) == 4
    call.need(fits, f"argument input must be (rows, channels, height, width), not {found}")
    return found


def _need_pairs(call: OpCall, least: dict[str, int]) -> None:
    for name, low in least.items():
        pair = call.attrs[name]
        fits = len(pair) in (2, 4 if name == "padding" else 2) and min(pair) >= low
        call.need(fits, f"argument {name} is {tuple(pair)}, not two numbers of {low} or more")


@define("conv2d", inputs="input filter bias?")
def conv2d(call: OpCall) -> Types:
    """out[f] = activation(Σ over the channels of f's group of filter[f] ⋆ input + bias[f]).

    attrs: stride, padding, dilation; groups; activation, "" or "relu".
    """
    images, weights = _need_images(call), call.need_ndim("filter", 4)
    filters, channels, *size = weights.shape
    groups = call.attrs["groups"]
    _need_pairs(call, {"stride": 1, "padding": 0, "dilation": 1})
    call.need(call.attrs["activation"] in FUSED_ACTIVATIONS, "activation is not a fused one")
    fits = groups >= 1 and channels * groups == images.shape[1] and filters % groups == 0
    call.need(
        fits,
        f"argument filter of shape {weights.shape} does not fit argument input of shape "
        f"{images.shape} in {groups} groups",
    )
    for bias in call.many("bias"):
        call.need(bias.shape == (filters,), f"bias of shape {bias.shape} is not {(filters,)}")
    sides = sides_of(call.attrs["padding"])
    steps = (call.attrs["stride"], sides, call.attrs["dilation"])
    shape = tuple(
        convolved_size(*sizes) for sizes in zip(images.shape[2:], size, *steps, strict=True)
    )
    call.need(
        min(shape) >= 1,
        f"argument filter of shape {weights.shape} with dilation {steps[2]} is larger than "
        f"argument input of shape {images.shape} with padding {tuple(call.attrs['padding'])}",
    )
    return {"out": images.reshaped((images.shape[0], filters, *shape))}


@define("pool2d", inputs="input", outputs="out argmax?")
def pool2d(call: OpCall) -> Types:
    """Maximum or average of each window; `argmax` is the position of a maximum in its plane.

    attrs: pool, size, stride, padding, ceil_mode, exclusive.
    """
    images, pool = _need_images(call), call.attrs["pool"]
    call.need(pool in POOLS, f"pool {pool!r} is not one of {', '.join(POOLS)}")
    _need_pairs(call, {"size": 1, "stride": 1, "padding": 0})
    size, padding = call.attrs["size"], call.attrs["padding"]
    shape = _pooled_shape(call, images.shape[2:])
    fits = min(shape) >= 1 and all(max(p) < s for p, s in zip(sides_of(padding), size, strict=True))
    call.need(
        fits,
        f"argument pool_size {tuple(size)} does not fit argument input of shape {images.shape} "
        f"with padding {tuple(padding)}, which must be smaller than the window",
    )
    out = images.reshaped((*images.shape[:2], *shape))
    return {"out": out} | ({"argmax": TensorType(out.shape, "int32")} if pool == "max" else {})


def _pooled_shape(call: OpCall, image: Shape) -> Shape:
    attrs = call.attrs
    sides = sides_of(attrs["padding"])
    windows = zip(image, attrs["size"], attrs["stride"], sides, strict=True)
    return tuple(pooled_size(*window, attrs["ceil_mode"]) for window in windows)
