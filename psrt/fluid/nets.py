"""`fluid.nets`: layers composed of layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psrt.core.errors import ProgramError
from psrt.fluid.adapting import adapted, signatures
from psrt.fluid.layers import LAYERS
from psrt.fluid.names import Variable, missing
from psrt.graph import layers as psrt_layers

_SIGNATURE = """
simple_img_conv_pool(input, num_filters, filter_size, pool_size, pool_stride, pool_padding=0,
    pool_type="max", global_pooling=False, conv_stride=1, conv_padding=0, conv_dilation=1,
    conv_groups=1, param_attr=None, bias_attr=None, act=None, use_cudnn: any=True)
"""
((_, _like),) = signatures(_SIGNATURE)
simple_img_conv_pool = adapted("simple_img_conv_pool", _like, psrt_layers.simple_img_conv_pool)


def sequence_conv_pool(
    input: Variable,
    num_filters: int,
    filter_size: int,
    param_attr: Any = None,
    act: str = "sigmoid",
    pool_type: str = "max",
    bias_attr: Any = None,
) -> Variable:
    """Convolution over the elements of each example, pooled: → (rows, num_filters)."""
    found = LAYERS["sequence_conv"](
        input, num_filters, filter_size, param_attr=param_attr, bias_attr=bias_attr, act=act
    )
    pooled: Variable = LAYERS["sequence_pool"](found, pool_type)
    return pooled


def img_conv_group(
    input: Variable,
    conv_num_filter: Sequence[int],
    pool_size: Any,
    conv_padding: Any = 1,
    conv_filter_size: Any = 3,
    conv_act: str | None = None,
    param_attr: Any = None,
    conv_with_batchnorm: Any = False,
    conv_batchnorm_drop_rate: Any = 0.0,
    pool_stride: Any = 1,
    pool_type: str = "max",
    use_cudnn: bool = True,
) -> Variable:
    """Convolutions, each with batch normalisation and dropout if asked for, then one pooling.

    Arguments beside `conv_num_filter` hold for all convolutions, or are lists of one for each.
    """
    made = input
    for at, filters in enumerate(conv_num_filter):
        norm, drop = _each(conv_with_batchnorm, at), _each(conv_batchnorm_drop_rate, at)
        made = LAYERS["conv2d"](
            made,
            filters,
            _each(conv_filter_size, at),
            padding=_each(conv_padding, at),
            param_attr=_each(param_attr, at),
            act=None if norm else conv_act,
        )
        if norm:
            made = LAYERS["batch_norm"](made, act=conv_act)
            made = LAYERS["dropout"](made, drop) if abs(drop) > 1e-5 else made
    pooled: Variable = LAYERS["pool2d"](made, pool_size, pool_type, pool_stride)
    return pooled


def glu(input: Variable, dim: int = -1) -> Variable:
    """Gated linear unit a · sigmoid(b), of the halves of `input` along `dim` (Dauphin 2017)."""
    a, b = LAYERS["split"](input, 2, dim)
    gated: Variable = LAYERS["elementwise_mul"](a, LAYERS["sigmoid"](b))
    return gated


def scaled_dot_product_attention(
    queries: Variable,
    keys: Variable,
    values: Variable,
    num_heads: int = 1,
    dropout_rate: float = 0.0,
) -> Variable:
    """softmax(q kᵀ / √d) v by head, without projections for one head: (rows, n, d) → (rows, n, e).

    With several heads, q, k and v are projected by fc first (Vaswani et al. 2017). Raises
    `ProgramError` for widths that the heads do not divide.
    """
    if num_heads > 1:
        queries, keys, values = (_heads(x, num_heads) for x in (queries, keys, values))
    scale = queries.shape[-1] ** -0.5
    scores = LAYERS["matmul"](queries, keys, transpose_y=True, alpha=scale)
    weights = LAYERS["softmax"](scores)
    if dropout_rate:
        weights = LAYERS["dropout"](weights, dropout_rate)
    made: Variable = LAYERS["matmul"](weights, values)
    if num_heads == 1:
        return made
    joined = LAYERS["transpose"](made, [0, 2, 1, 3])
    return LAYERS["reshape"](joined, [0, 0, joined.shape[2] * joined.shape[3]])  # type: ignore[no-any-return]


def _heads(x: Variable, count: int) -> Variable:
    """A projection of (rows, n, d) in heads: (rows, heads, n, d / heads)."""
    width = x.shape[-1]
    if width % count:
        raise ProgramError(f"{count} heads do not divide {x.name}, whose rows are {width} wide.")
    projected = LAYERS["fc"](x, width, num_flatten_dims=2)
    split = LAYERS["reshape"](projected, [0, 0, count, width // count])
    return LAYERS["transpose"](split, [0, 2, 1, 3])  # type: ignore[no-any-return]


def _each(value: Any, at: int) -> Any:
    return value[at] if isinstance(value, list | tuple) else value


__all__ = ["glu", "img_conv_group", "scaled_dot_product_attention", "sequence_conv_pool"]
__all__ += ["simple_img_conv_pool"]


def __getattr__(name: str) -> object:
    raise missing("fluid.nets", name, __all__)
