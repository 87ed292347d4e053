"""Rows of tables that are exported whole; ragged ids are refused before, so ids are (rows, k)."""

from __future__ import annotations

import math

from psrt.trainer.models.onnx_nodes.table import Drawing, exports

_POOLS = {"average": "ReduceMean", "max": "ReduceMax"}


@exports("embedding")
def embedding(d: Drawing) -> None:
    d.node("Gather", (d.one("table"), d.one("ids")), d.out(), axis=0)


@exports("slot_embeddings")
def slot_embeddings(d: Drawing) -> None:
    counts = [d.shape_of(ids)[1] for ids in d.all("ids")]
    pooled = [_pooled(d, ids, count) for ids, count in zip(d.all("ids"), counts, strict=True)]
    d.node("Concat", pooled, d.out(), axis=1)


def _pooled(d: Drawing, ids: str, count: int) -> str:
    rows, pool = d.node("Gather", (d.one("table"), ids), axis=0), d.attrs["pool"]
    if pool in _POOLS:
        return d.node(_POOLS[pool], (rows,), axes=[1], keepdims=0)
    if pool in ("first", "last"):
        place = 0 if pool == "first" else count - 1
        return d.node("Gather", (rows, d.number(place, "int64")), axis=1)
    total = d.node("ReduceSum", (rows, d.ints(1)), keepdims=0)
    return total if pool == "sum" else d.node("Div", (total, d.number(math.sqrt(count))))


@exports("weighted_embedding")
def weighted_embedding(d: Drawing) -> None:
    rows = d.node("Gather", (d.one("table"), d.one("ids")), axis=0)
    weights = d.node("Unsqueeze", (d.one("values"), d.ints(2)))
    d.node("ReduceSum", (d.node("Mul", (rows, weights)), d.ints(1)), d.out(), keepdims=0)
