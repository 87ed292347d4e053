"""Rows of tables by id.

`ids` of shape (rows, k) belong to examples of k ids each; ragged ids of shape (elements,) to
examples of any number. `table` of shape (height, width) is a parameter. attrs: `padding_id`, an id
whose row reads as zeros and gets no gradient, or None.
"""

from __future__ import annotations

from psrt.graph.ops.sequence import argmax_of, need_pool
from psrt.graph.ops.table import OWN, ROWS, OpCall, TensorType, Types, define


def need_ids(call: OpCall, ids: TensorType) -> None:
    """Require int64 ids of any shape."""
    fits = ids.dtype == "int64" and len(ids.shape) > 0
    call.need(fits, f"argument input must hold int64 ids, not {ids}")


def need_ids_by_example(call: OpCall, ids: TensorType) -> None:
    need_ids(call, ids)
    fits = len(ids.shape) == (1 if ids.ragged else 2) and ids.shape[0] == ROWS
    call.need(fits, f"argument input must be (batch, k) ids, not {ids}")


@define("embedding", inputs="ids table", ragged="ids")
def embedding(call: OpCall) -> Types:
    """Row of each id: (rows, k) → (rows, k, width), ragged (n,) → ragged (n, width)."""
    ids, table = call.one("ids"), call.need_ndim("table", 2)
    need_ids(call, ids)
    return {"out": TensorType((*ids.shape, table.shape[1]), table.dtype, ids.ragged)}


@define("slot_embeddings", inputs="ids* table", outputs="out argmax?", ragged="ids", lengths=OWN)
def slot_embeddings(call: OpCall) -> Types:
    """Pool the rows of each slot and join the slots: (rows, slots · width)."""
    slots, table = call.many("ids"), call.need_ndim("table", 2)
    need_pool(call)
    for ids in slots:
        need_ids_by_example(call, ids)
    shape = (ROWS, len(slots) * table.shape[1])
    return {"out": TensorType(shape, table.dtype)} | argmax_of(call, shape)


@define("slot_rows", inputs="ids* table", outputs="out lists* rows*", ragged="ids", lengths=OWN)
def slot_rows(call: OpCall) -> Types:
    """Rows of slots of one id an example, joined: (rows, slots · width).

    `lists` ragged (n, width) and `rows` (rows, width) are the part of each slot.
    """
    slots, table = call.many("ids"), call.need_ndim("table", 2)
    for ids in slots:
        need_ids_by_example(call, ids)
        call.need(ids.ragged, f"argument ids must be ragged, not {ids}")
    width = table.shape[1]
    return {
        "out": TensorType((ROWS, len(slots) * width), table.dtype),
        "lists": TensorType((ROWS, width), table.dtype, ragged=True),
        "rows": TensorType((ROWS, width), table.dtype),
    }


@define("weighted_embedding", inputs="ids values table", ragged="ids values")
def weighted_embedding(call: OpCall) -> Types:
    """Σ value · row over the ids of each example: → (rows, width)."""
    ids, values, table = call.one("ids"), call.one("values"), call.need_ndim("table", 2)
    need_ids_by_example(call, ids)
    call.need(values.is_float, f"argument values must hold floats, not {values}")
    shapes = (ids.shape, (ROWS, 1)) if ids.ragged else (ids.shape,)
    fits = values.ragged == ids.ragged and values.shape in shapes
    call.need(fits, f"argument values is {values}, argument input is {ids}")
    return {"out": TensorType((ROWS, table.shape[1]), table.dtype)}
