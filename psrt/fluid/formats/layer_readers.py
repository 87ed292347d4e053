"""Ops of Fluid's program files that have parameters, or work on sequences, as layer calls."""

from __future__ import annotations

from typing import Any

import psrt.fluid.layers as layers
from psrt.core.errors import DataError
from psrt.fluid.adapting import lookup
from psrt.fluid.formats.op_readers import Outputs, ReadOp, reads

# --- layers with parameters ---


@reads("lookup_table", "lookup_table_v2")
def _lookup(op: ReadOp) -> Outputs:
    padding = op.attr("padding_idx", -1)
    options: dict[str, Any] = {"padding_idx": None if padding < 0 else padding}
    options["param_attr"] = op.param("W")
    embed = layers.embedding if op.op.type == "lookup_table" else lookup
    return {"Out": embed(op.one("Ids"), list(op.shape("W")), **options)}


@reads("conv2d", "depthwise_conv2d")
def _conv2d(op: ReadOp) -> Outputs:
    filters, _, *size = op.shape("Filter")
    made = layers.conv2d(
        op.one("Input"),
        filters,
        size,
        op.attr("strides", [1, 1]),
        _padding(op),
        op.attr("dilations", [1, 1]),
        op.attr("groups", 1),
        param_attr=op.param("Filter"),
        bias_attr=False,
        data_format=op.attr("data_format", "NCHW").replace("AnyLayout", "NCHW"),
    )
    return {"Output": made}


def _padding(op: ReadOp) -> Any:
    """Sizes, or what they are computed by: SAME or VALID."""
    how = op.attr("padding_algorithm", "EXPLICIT")
    return op.attr("paddings", [0, 0]) if how == "EXPLICIT" else how


@reads("pool2d")
def _pool2d(op: ReadOp) -> Outputs:
    if op.attr("adaptive", False) and op.attr("ksize") != [1, 1]:
        raise DataError("An op pool2d of the file is adaptive; psrt pools windows of one size.")
    whole = op.attr("global_pooling", False) or op.attr("adaptive", False)
    made = layers.pool2d(
        op.one(),
        op.attr("ksize"),
        op.attr("pooling_type", "max"),
        op.attr("strides", [1, 1]),
        _padding(op),
        whole,
        ceil_mode=op.attr("ceil_mode", False),
        exclusive=op.attr("exclusive", True),
    )
    return {"Out": made}


@reads("batch_norm")
def _batch_norm(op: ReadOp) -> Outputs:
    made = layers.batch_norm(
        op.one(),
        is_test=True,
        momentum=op.attr("momentum", 0.9),
        epsilon=op.attr("epsilon", 1e-5),
        param_attr=op.param("Scale"),
        bias_attr=op.param("Bias"),
        moving_mean_name=op.name("Mean"),
        moving_variance_name=op.name("Variance"),
    )
    return {"Y": made}


@reads("layer_norm")
def _layer_norm(op: ReadOp) -> Outputs:
    made = layers.layer_norm(
        op.one(),
        scale=bool(op.name("Scale")),
        shift=bool(op.name("Bias")),
        begin_norm_axis=op.attr("begin_norm_axis", 1),
        epsilon=op.attr("epsilon", 1e-5),
        param_attr=op.param("Scale") or None,
        bias_attr=op.param("Bias") or None,
    )
    return {"Y": made}


# --- constants and losses ---


@reads("fill_constant")
def _fill_constant(op: ReadOp) -> Outputs:
    given = op.attr("shape"), op.attr("dtype", 5), op.attr("value", 0.0)
    return {"Out": layers.fill_constant(list(given[0]), given[1], float(given[2]))}


@reads("one_hot")
def _one_hot(op: ReadOp) -> Outputs:
    return {"Out": layers.one_hot(op.one(), op.attr("depth"))}


@reads("cross_entropy")
def _cross_entropy(op: ReadOp) -> Outputs:
    soft = op.attr("soft_label", False)
    return {"Y": layers.cross_entropy(op.one("X"), op.one("Label"), soft_label=soft)}


@reads("softmax_with_cross_entropy")
def _softmax_loss(op: ReadOp) -> Outputs:
    soft, both = op.attr("soft_label", False), (op.one("Logits"), op.one("Label"))
    loss, softmax = layers.softmax_with_cross_entropy(*both, soft, return_softmax=True)
    return {"Loss": loss, "Softmax": softmax}


@reads("sigmoid_cross_entropy_with_logits")
def _sigmoid_loss(op: ReadOp) -> Outputs:
    return {"Out": layers.sigmoid_cross_entropy_with_logits(op.one("X"), op.one("Label"))}


# --- sequences ---


@reads("sequence_pool")
def _sequence_pool(op: ReadOp) -> Outputs:
    return {"Out": layers.sequence_pool(op.one(), op.attr("pooltype", "AVERAGE"))}


@reads("sequence_softmax")
def _sequence_softmax(op: ReadOp) -> Outputs:
    return {"Out": layers.sequence_softmax(op.one())}


@reads("sequence_expand", "sequence_expand_as")
def _sequence_expand(op: ReadOp) -> Outputs:
    return {"Out": layers.sequence_expand(op.one("X"), op.one("Y"))}


@reads("sequence_conv")
def _sequence_conv(op: ReadOp) -> Outputs:
    made = layers.sequence_conv(
        op.one(),
        op.shape("Filter")[1],
        op.attr("contextLength"),
        padding_start=op.attr("contextStart", 0),
        bias_attr=False,
        param_attr=op.param("Filter"),
    )
    return {"Out": made}
