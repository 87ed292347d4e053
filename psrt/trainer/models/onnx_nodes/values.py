"""Other dtypes, constants, one-hot rows, rows picked by index, masks."""

from __future__ import annotations

import numpy as np

from psrt.trainer.models.onnx_nodes.table import Drawing, exports

_TENSOR_TYPES = {"float32": 1, "int64": 7, "float64": 11}
"""onnx.TensorProto.FLOAT, INT64, DOUBLE."""


@exports("cast")
def cast(d: Drawing) -> None:
    d.node("Cast", (d.one("x"),), d.out(), to=_TENSOR_TYPES[d.attrs["dtype"]])


@exports("zeros_like", "ones_like")
def constant_like(d: Drawing) -> None:
    value = d.number(float(d.op.type == "ones_like"), d.dtype("x"))
    d.node("Expand", (value, d.node("Shape", (d.one("x"),))), d.out())


@exports("fill_constant")
def fill_constant(d: Drawing) -> None:
    values = np.full(d.attrs["shape"], d.attrs["value"], d.attrs["dtype"])
    d.node("Identity", (d.constant(values),), d.out())


@exports("constant")
def constant(d: Drawing) -> None:
    values = np.array(d.attrs["values"], d.attrs["dtype"]).reshape(d.attrs["shape"])
    d.node("Identity", (d.constant(values),), d.out())


@exports("fill_constant_batch_size_like")
def fill_constant_batch_size_like(d: Drawing) -> None:
    rows = d.node("Shape", (d.one("input"),), end=1)
    shape = d.node("Concat", (rows, d.ints(*d.attrs["shape"][1:])), axis=0)
    d.node("Expand", (d.number(d.attrs["value"], d.attrs["dtype"]), shape), d.out())


@exports("one_hot")
def one_hot(d: Drawing) -> None:
    depth, values = d.number(d.attrs["depth"], "int64"), d.constant(np.array([0, 1], np.float32))
    d.node("OneHot", (_without_last_one(d, "input"), depth, values), d.out(), axis=-1)


@exports("gather")
def gather(d: Drawing) -> None:
    d.node("Gather", (d.one("input"), _without_last_one(d, "index")), d.out(), axis=0)


@exports("gather_nd")
def gather_nd(d: Drawing) -> None:
    d.node("GatherND", (d.one("input"), d.one("index")), d.out())


def _without_last_one(d: Drawing, slot: str) -> str:
    """Ids (…, 1) name one thing each, as (…) do."""
    shape = d.shape(slot)
    if len(shape) < 2 or shape[-1] != 1:
        return d.one(slot)
    return d.node("Squeeze", (d.one(slot), d.ints(-1)))


@exports("sequence_mask")
def sequence_mask(d: Drawing) -> None:
    lengths = d.node("Reshape", (d.one("x"), d.ints(-1, 1)))
    places = d.ints(*range(d.attrs["maxlen"]))
    inside = d.node("Less", (places, lengths))
    d.node("Cast", (inside,), d.out(), to=_TENSOR_TYPES[d.attrs["dtype"]])
