"""Rows of tables by id, and pooling of the elements of each example.

`ids` of shape (rows, k) belong to examples of k ids each; ragged ids of shape (elements,) to
examples of any number. `table` of shape (height, width) is a parameter. attrs: `padding_id`, an id
whose row reads as zeros and gets no gradient, or None.
"""

from __future__ import annotations

from psrt.graph.ops.table import ROWS, Call, TensorType, Types, define

POOLS = ("sum", "average", "max")


def need_ids(call: Call, ids: TensorType) -> None:
    call.need(ids.dtype == "int64", f"argument input must hold int64 ids, not {ids}")
    fits = len(ids.shape) == (1 if ids.ragged else 2)
    call.need(fits, f"argument input must be (batch, k) ids, not {ids}")


def need_pool(call: Call) -> None:
    pool = call.attrs["pool"]
    call.need(pool in POOLS, f"the pool {pool!r} is not one of {', '.join(POOLS)}")


def argmax_of(call: Call, width: int) -> Types:
    """Max pooling also says which row each maximum came from, slot after slot, for its gradient."""
    return {"argmax": TensorType((ROWS, width), "int32")} if call.attrs["pool"] == "max" else {}


@define("embedding", inputs="ids table", ragged="ids")
def embedding(call: Call) -> Types:
    """The row of each id: (rows, k) → (rows, k, width), ragged (n,) → ragged (n, width)."""
    ids, table = call.one("ids"), call.need_ndim("table", 2)
    need_ids(call, ids)
    return {"out": TensorType((*ids.shape, table.shape[1]), table.dtype, ids.ragged)}


@define("slot_embeddings", inputs="ids* table", outputs="out argmax?", ragged="ids")
def slot_embeddings(call: Call) -> Types:
    """Pool the rows of each slot and set the slots side by side: (rows, slots · width)."""
    slots, table = call.many("ids"), call.need_ndim("table", 2)
    need_pool(call)
    for ids in slots:
        need_ids(call, ids)
    out = TensorType((ROWS, len(slots) * table.shape[1]), table.dtype)
    return {"out": out} | argmax_of(call, table.shape[1])


@define("sequence_pool", inputs="x", outputs="out argmax?", ragged="x")
def sequence_pool(call: Call) -> Types:
    """Pool the elements of each example: ragged (n, width) → (rows, width); none gives 0."""
    x = call.need_float("x")
    need_pool(call)
    fits = x.ragged and len(x.shape) == 2
    call.need(fits, f"argument input must be ragged rows of floats, not {x}")
    return {"out": TensorType(x.shape, x.dtype)} | argmax_of(call, x.shape[1])
