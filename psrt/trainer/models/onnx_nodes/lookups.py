"""Rows of tables, by ids (rows, k) or ragged ones (n,).

A table of fixed height is a whole array. Of a distributed one the file has the rows that were
trained, found by a vocabulary of their ids, and computes the initial values of all others.
"""

from __future__ import annotations

import math

from psrt.trainer.models.onnx_nodes import ragged
from psrt.trainer.models.onnx_nodes.initial_rows import initial_rows
from psrt.trainer.models.onnx_nodes.table import Drawing, exports

_POOLS = {"average": "ReduceMean", "max": "ReduceMax"}


@exports("embedding")
def embedding(d: Drawing) -> None:
    _rows(d, d.one("ids"), d.out())


@exports("slot_embeddings")
def slot_embeddings(d: Drawing) -> None:
    d.node("Concat", [_pooled(d, ids) for ids in d.all("ids")], d.out(), axis=1)


def _pooled(d: Drawing, ids: str) -> str:
    rows, pool = _rows(d, ids), d.attrs["pool"]
    if d.is_ragged(ids):
        return ragged.pooled(d, rows, ids, d.shape("table")[1], pool)
    count = d.shape_of(ids)[1]
    if pool in _POOLS:
        return d.node(_POOLS[pool], (rows, d.ints(1)), keepdims=0)
    if pool in ("first", "last"):
        place = 0 if pool == "first" else count - 1
        return d.node("Gather", (rows, d.number(place, "int64")), axis=1)
    total = d.node("ReduceSum", (rows, d.ints(1)), keepdims=0)
    return total if pool == "sum" else d.node("Div", (total, d.number(math.sqrt(count))))


@exports("weighted_embedding")
def weighted_embedding(d: Drawing) -> None:
    ids = d.one("ids")
    rows = _rows(d, ids)
    if d.is_ragged(ids):
        values = d.node("Reshape", (d.one("values"), d.ints(-1, 1)))
        weighted = d.node("Mul", (rows, values))
        d.node("Identity", (ragged.pooled(d, weighted, ids, d.shape("table")[1], "sum"),), d.out())
        return
    weights = d.node("Unsqueeze", (d.one("values"), d.ints(2)))
    d.node("ReduceSum", (d.node("Mul", (rows, weights)), d.ints(1)), d.out(), keepdims=0)


def _rows(d: Drawing, ids: str, *outs: str) -> str:
    """Rows (…, width) of ids (…)."""
    table = d.one("table")
    vocabulary = d.vocabulary(table)
    if vocabulary is None:
        return d.node("Gather", (table, ids), *outs, axis=0)
    spec, count = vocabulary.spec, len(vocabulary.ids)
    place = d.place_of(ids, vocabulary.ids, count)
    saved = d.node("Gather", (table, place), axis=0)
    initial = initial_rows(d, spec.initializer, spec.seed, spec.width, ids)
    is_saved = d.node("Less", (place, d.number(count, "int64")))
    return d.node("Where", (d.node("Unsqueeze", (is_saved, d.ints(-1))), saved, initial), *outs)
