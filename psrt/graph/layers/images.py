"""Layers over images (rows, channels, height, width).

Sizes, strides and dilations are one number, or a pair (rows, columns). A padding is that, or four
numbers (top, bottom, left, right), "VALID" for none, or "SAME" for so much, the odd one behind,
that a stride of 1 keeps the size, and a larger one divides it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

from psrt.core.types import Shape
from psrt.graph.arguments import are_several
from psrt.graph.builder import Layer
from psrt.graph.initializer import Constant, Normal
from psrt.graph.layers.elementwise import activate
from psrt.graph.ops import FUSED_ACTIVATIONS
from psrt.graph.param import Param
from psrt.graph.program import Var

Size: TypeAlias = int | Sequence[int]
Padding: TypeAlias = Size | str

_POOLS = {"max": "max", "avg": "average"}


def conv2d(
    input: Var,
    num_filters: int,
    filter_size: Size,
    stride: Size = 1,
    padding: Padding = 0,
    dilation: Size = 1,
    groups: int = 1,
    act: str | None = None,
    param: Param | str | None = None,
    bias: Param | str | Literal[False] | None = None,
) -> Var:
    """2-D convolution, activation(filter ⋆ input + bias): (rows, C, H, W) → (rows, F, H', W').

    F is `num_filters`, H' = ⌊(H + 2 padding − dilation (filter_size − 1) − 1) / stride⌋ + 1. With
    `groups` a filter reads the C / groups channels of its group; with "SAME" dilation is 1. The
    filter (F, C / groups, kh, kw) starts as N(0, 2 / (C kh kw)), the variance of He et al. 2015;
    the bias, which `bias=False` omits, at 0.
    """
    layer = Layer("conv2d")
    channels = _channels(layer, input)
    num_filters, groups = layer.whole("num_filters", num_filters), layer.whole("groups", groups)
    if groups < 1 or channels % groups or num_filters < 1 or num_filters % groups:
        raise layer.error(
            f"argument groups is {groups}, which does not divide num_filters {num_filters} and "
            f"the channels of argument input of shape {input.shape}"
        )
    size = _pair(layer, "filter_size", filter_size, least=1)
    spread = Normal(0.0, math.sqrt(2.0 / (channels * math.prod(size))))
    weights = layer.parameter("w_0", (num_filters, channels // groups, *size), param, spread)
    biases = [] if bias is False else [layer.parameter("b_0", (num_filters,), bias, Constant(0.0))]
    fused = act if act in FUSED_ACTIVATIONS else ""
    steps = _pair(layer, "stride", stride, least=1)
    out = layer.op(
        "conv2d",
        {"input": input, "filter": weights, "bias": biases},
        stride=steps,
        padding=_sides(layer, "padding", padding, input.shape[2:], size, steps),
        dilation=(1, 1) if _named(padding) == "SAME" else _pair(layer, "dilation", dilation, 1),
        groups=groups,
        activation=fused or "",
    )
    return out if fused else activate(layer, out, act)


def pool2d(
    input: Var,
    pool_size: Size = -1,
    pool_type: str = "max",
    pool_stride: Size = 1,
    pool_padding: Padding = 0,
    global_pooling: bool = False,
    ceil_mode: bool = False,
    exclusive: bool = True,
) -> Var:
    """Maximum ("max") or average ("avg") of windows: (rows, C, H, W) → (rows, C, H', W').

    `global_pooling` takes the whole image as the window and ignores size, stride and padding.
    `ceil_mode` counts a window that begins inside the image and ends beyond it. Padding is never
    the maximum; an average divides by the elements inside the image if `exclusive`, otherwise by
    the size of the window.
    """
    layer = Layer("pool2d")
    _channels(layer, input)
    if pool_type not in _POOLS:
        raise layer.error(f"argument pool_type is {pool_type!r}, psrt has max and avg")
    padding: tuple[int, ...] = (0, 0)
    if global_pooling:
        size, stride = input.shape[2:], (1, 1)
    else:
        size = _pair(layer, "pool_size", pool_size, least=1)
        stride = _pair(layer, "pool_stride", pool_stride, least=1)
        padding = _sides(layer, "pool_padding", pool_padding, input.shape[2:], size, stride)
    return layer.op(
        "pool2d",
        {"input": input},
        pool=_POOLS[pool_type],
        size=size,
        stride=stride,
        padding=padding,
        ceil_mode=ceil_mode,
        exclusive=exclusive,
    )


def simple_img_conv_pool(
    input: Var,
    num_filters: int,
    filter_size: Size,
    pool_size: Size,
    pool_stride: Size,
    pool_padding: Padding = 0,
    pool_type: str = "max",
    global_pooling: bool = False,
    conv_stride: Size = 1,
    conv_padding: Padding = 0,
    conv_dilation: Size = 1,
    conv_groups: int = 1,
    act: str | None = None,
    param: Param | str | None = None,
    bias: Param | str | Literal[False] | None = None,
) -> Var:
    """`conv2d`, then `pool2d`: (rows, C, H, W) → (rows, num_filters, H', W')."""
    maps = conv2d(
        input,
        num_filters,
        filter_size,
        stride=conv_stride,
        padding=conv_padding,
        dilation=conv_dilation,
        groups=conv_groups,
        act=act,
        param=param,
        bias=bias,
    )
    return pool2d(maps, pool_size, pool_type, pool_stride, pool_padding, global_pooling)


def _channels(layer: Layer, input: Var) -> int:
    """Channels of an image var: a filter needs its shape before its op checks the input."""
    (images,) = layer.checked("input", input)
    if images.ragged or len(images.shape) != 4:
        what = f"argument input is {images.name} of type {images.type}"
        raise layer.error(f"{what}, which is not (rows, channels, height, width)")
    return images.shape[1]


def _pair(layer: Layer, argument: str, given: Size, least: int) -> tuple[int, int]:
    listed = layer.wholes(argument, given if are_several(given) else (given, given))
    if len(listed) != 2 or min(listed) < least:
        raise layer.error(f"argument {argument} is {given}, not one or two sizes from {least} on")
    return listed[0], listed[1]


def _sides(
    layer: Layer, argument: str, given: Padding, image: Shape, window: Shape, stride: Shape
) -> tuple[int, ...]:
    """(rows, columns), or (top, left, bottom, right) where sides of an image differ."""
    name = _named(given)
    if name == "VALID":
        return 0, 0
    if isinstance(given, str):
        before, behind = _kept_size(layer, argument, given, image, window, stride)
    elif not isinstance(given, int) and are_several(given) and len(given) == 4:
        top, bottom, left, right = layer.wholes(argument, given)
        before, behind = (top, left), (bottom, right)
    else:
        before = behind = _pair(layer, argument, given, least=0)
    return before if before == behind else (*before, *behind)


def _kept_size(
    layer: Layer, argument: str, given: Padding, image: Shape, window: Shape, stride: Shape
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if _named(given) != "SAME" or min(image) < 0:
        known = f"; the images have {image} pixels" if _named(given) == "SAME" else ""
        raise layer.error(f"argument {argument} is {given!r}, not sizes, SAME or VALID{known}")
    sizes = zip(image, window, stride, strict=True)
    whole = [max((math.ceil(n / s) - 1) * s + w - n, 0) for n, w, s in sizes]
    return tuple(n // 2 for n in whole), tuple(n - n // 2 for n in whole)


def _named(padding: Padding) -> str:
    return padding.upper() if isinstance(padding, str) else ""
