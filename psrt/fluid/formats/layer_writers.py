"""Ops of psrt that have parameters, or work on sequences, as ops of Fluid's program files."""

from __future__ import annotations

from collections.abc import Sequence

from psrt.fluid.formats.op_writers import FileTarget, finish, names_of, writes
from psrt.fluid.formats.records import Long
from psrt.graph.ops import ROWS
from psrt.graph.program import Op

# --- layers with parameters ---


@writes("embedding")
def _embedding(op: Op, to: FileTarget) -> None:
    ids, out = op.inputs["ids"][0], op.outputs["out"][0]
    padding = op.attrs["padding_id"]
    type = "lookup_table" if to.var(ids).ragged else "lookup_table_v2"
    given = {"Ids": [ids], "W": op.inputs["table"]}
    to.op(type, given, {"Out": [out]}, padding_idx=Long(-1 if padding is None else padding))


@writes("conv2d")
def _conv2d(op: Op, to: FileTarget) -> None:
    made = to.temp(to.shape(op.outputs["out"][0]))
    to.op(
        "conv2d",
        {"Input": op.inputs["input"], "Filter": op.inputs["filter"]},
        {"Output": [made]},
        strides=list(op.attrs["stride"]),
        paddings=_paddings(op),
        dilations=list(op.attrs["dilation"]),
        groups=op.attrs["groups"],
        data_format="NCHW",
        padding_algorithm="EXPLICIT",
    )
    finish(op, to, made, axis=1)


@writes("pool2d")
def _pool2d(op: Op, to: FileTarget) -> None:
    x, out = names_of(op)
    to.op(
        "pool2d",
        {"X": [x]},
        {"Out": [out]},
        pooling_type={"max": "max", "average": "avg"}[op.attrs["pool"]],
        ksize=list(op.attrs["size"]),
        strides=list(op.attrs["stride"]),
        paddings=_paddings(op),
        ceil_mode=op.attrs["ceil_mode"],
        exclusive=op.attrs["exclusive"],
        global_pooling=False,
        adaptive=False,
        data_format="NCHW",
        padding_algorithm="EXPLICIT",
    )


def _paddings(op: Op) -> list[int]:
    """A pair, or (top, bottom, left, right)."""
    given = list(op.attrs["padding"])
    return given if len(given) == 2 else [given[side] for side in (0, 2, 1, 3)]


@writes("batch_norm")
def _batch_norm(op: Op, to: FileTarget) -> None:
    inputs = {slot.title(): op.inputs[slot] for slot in ("scale", "bias", "mean", "variance")}
    made: dict[str, Sequence[str]] = {"Y": op.outputs["out"]}
    made |= {"MeanOut": inputs["Mean"], "VarianceOut": inputs["Variance"]}
    channels = to.shape(op.inputs["scale"][0])
    made |= {slot: [to.temp(channels)] for slot in ("SavedMean", "SavedVariance")}
    to.op(
        "batch_norm",
        {"X": op.inputs["input"], **inputs},
        made,
        momentum=float(op.attrs["momentum"]),
        epsilon=float(op.attrs["epsilon"]),
        is_test=True,
        use_global_stats=op.attrs["use_global_stats"],
        data_layout="NCHW",
    )


@writes("layer_norm")
def _layer_norm(op: Op, to: FileTarget) -> None:
    given = {slot.title(): op.inputs[slot] for slot in ("scale", "bias") if slot in op.inputs}
    rows = {"Mean": [to.temp((ROWS,))], "Variance": [to.temp((ROWS,))]}
    axes = {"begin_norm_axis": op.attrs["axis"], "epsilon": float(op.attrs["epsilon"])}
    x = op.inputs["input"]
    to.op("layer_norm", {"X": x, **given}, {"Y": op.outputs["out"], **rows}, **axes)


# --- sequences ---


@writes("sequence_pool")
def _sequence_pool(op: Op, to: FileTarget) -> None:
    x, out = names_of(op)
    made = {"Out": [out], "MaxIndex": [to.temp(to.shape(out), "int32")]}
    to.op("sequence_pool", {"X": [x]}, made, pooltype=op.attrs["pool"].upper(), is_test=True)


@writes("sequence_softmax")
def _sequence_softmax(op: Op, to: FileTarget) -> None:
    x, out = names_of(op)
    to.op("sequence_softmax", {"X": [x]}, {"Out": [out]})
