"""`fluid.nets`: layers composed of layers."""

from __future__ import annotations

from psrt.fluid.adapting import adapted, signatures
from psrt.fluid.names import missing
from psrt.graph import layers as psrt_layers

_SIGNATURE = """
simple_img_conv_pool(input, num_filters, filter_size, pool_size, pool_stride, pool_padding=0,
    pool_type="max", global_pooling=False, conv_stride=1, conv_padding=0, conv_dilation=1,
    conv_groups=1, param_attr=None, bias_attr=None, act=None, use_cudnn: any=True)
"""
_INSTEAD = {
    "sequence_conv_pool": "Pool with layers.sequence_pool.",
    "img_conv_group": "Call layers.conv2d, layers.batch_norm and layers.pool2d.",
    "glu": "Multiply halves of layers.split by layers.sigmoid of the other.",
    "scaled_dot_product_attention": "Compose it of layers.matmul and layers.softmax.",
}

((_, _like),) = signatures(_SIGNATURE)
simple_img_conv_pool = adapted("simple_img_conv_pool", _like, psrt_layers.simple_img_conv_pool)

__all__ = ["simple_img_conv_pool"]


def __getattr__(name: str) -> object:
    raise missing("fluid.nets", name, __all__, _INSTEAD)
