"""Rows of tables by id, and the gradients that are added back into rows.

A gradient of a table has one row for each bound row, or for each distinct id of a zero-copy table;
the executor pairs it with the ids. Lookups of one table add into one memory, which the first of
them zeroes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from psrt.core.types import Array
from psrt.executor.compute.pooling import Segments, Slots
from psrt.executor.compute.registry import Bound, Step, computes, flat_groups, flat_rows
from psrt.executor.memory import Cell
from psrt.graph.gradients import BEFORE
from psrt.kernels.ops import POOLS, pooling
from psrt.kernels.tables import rows


@computes("embedding")
def embedding(op: Bound) -> Step:
    ids, table, out = op.one("ids"), op.rows("table"), op.one("out")
    gather = op.kernel(rows.gather)

    def run() -> None:
        width = table.values.shape[1]
        result = out.reserve((*ids.value.shape, width))
        gather(table.values, table.index_of(ids), result.reshape(-1, width))

    return run


@computes("embedding_grad")
def embedding_grad(op: Bound) -> Step:
    ids, table, grad = op.one("ids"), op.rows("table"), op.one("out@GRAD")
    accumulator, scatter_add_groups_ = _accumulator(op), op.kernel(rows.scatter_add_groups_)

    def run() -> None:
        sums = accumulator()
        scatter_add_groups_(
            sums, table.gradient_row_of(ids), *flat_groups(grad.value, sums.shape[1])
        )
        table.zero_padding_(sums)

    return run


def _accumulator(op: Bound) -> Callable[[], Array]:
    """Memory (n, width) of a table's gradient: zeros, or the sum of earlier lookups."""
    before, table, out = op.maybe(BEFORE), op.rows("table"), op.one("table@GRAD")

    def continued() -> Array:
        assert before is not None
        out.value = before.value
        return out.value

    def fresh() -> Array:
        sums = out.reserve(table.gradient_shape)
        sums.fill(0)
        return sums

    return fresh if before is None else continued


def _rows_of(grad: Cell, width: int) -> Array:
    """The gradient (n, width) of the looked-up rows, contiguous."""
    return np.ascontiguousarray(grad.value).reshape(-1, width)


# --- pooled by example ----------------------------------------------------------------------------


@computes("slot_embeddings")
def slot_embeddings(op: Bound) -> Step:
    slots, table, out = Slots(op, "ids"), op.rows("table"), op.one("out")
    argmax, pool = op.maybe("argmax"), op.attrs["pool"]
    pool_rows, pool_max = op.kernel(pooling.pool_rows), op.kernel(pooling.pool_max)

    def run() -> None:
        values, offsets = table.values, slots.offsets()
        width = values.shape[1]
        result = out.reserve((offsets.shape[1] - 1, slots.count * width))
        pooled = result.reshape(-1, width)
        if argmax is None:
            pool_rows(values, slots.index(table), offsets, POOLS[pool], pooled)
        else:
            sources = argmax.reserve(result.shape).reshape(-1, width)
            pool_max(values, slots.index(table), offsets, pooled, sources)

    return run


@computes("slot_embeddings_grad")
def slot_embeddings_grad(op: Bound) -> Step:
    slots, table, grad = Slots(op, "ids"), op.rows("table"), op.one("out@GRAD")
    argmax, pool, accumulator = op.maybe("argmax"), op.attrs["pool"], _accumulator(op)
    pool_rows_grad_ = op.kernel(pooling.pool_rows_grad_)
    pool_max_grad_ = op.kernel(pooling.pool_max_grad_)

    def run() -> None:
        sums = accumulator()
        if argmax is None:
            d, stride = flat_rows(grad.value)
            gradient_rows, offsets = slots.gradient_rows(table), slots.offsets()
            pool_rows_grad_(sums, gradient_rows, offsets, POOLS[pool], d, stride)
        else:
            d, width = _rows_of(grad, sums.shape[1]), sums.shape[1]
            pool_max_grad_(sums, argmax.value.reshape(-1, width), d)
        table.zero_padding_(sums)

    return run


@computes("weighted_embedding")
def weighted_embedding(op: Bound) -> Step:
    ids, values = op.one("ids"), op.one("values")
    table, out, segments = op.rows("table"), op.one("out"), Segments(ids)
    pool_weighted = op.kernel(pooling.pool_weighted)

    def run() -> None:
        offsets, rows_ = segments.offsets(), table.values
        result = out.reserve((len(offsets) - 1, rows_.shape[1]))
        pool_weighted(rows_, table.index_of(ids), values.value.reshape(-1), offsets, result)

    return run


@computes("weighted_embedding_grad")
def weighted_embedding_grad(op: Bound) -> Step:
    parts = []
    if op.maybe("values@GRAD") is not None:
        parts.append(_values_grad(op))
    if op.maybe("table@GRAD") is not None:
        parts.append(_table_grad(op))

    def run() -> None:
        for part in parts:
            part()

    return run


def _table_grad(op: Bound) -> Step:
    ids, values, grad = op.one("ids"), op.one("values"), op.one("out@GRAD")
    table, segments, accumulator = op.rows("table"), Segments(ids), _accumulator(op)
    pool_weighted_grad_ = op.kernel(pooling.pool_weighted_grad_)

    def run() -> None:
        sums, gradient_rows, weights = (
            accumulator(),
            table.gradient_row_of(ids),
            values.value.reshape(-1),
        )
        d = _rows_of(grad, sums.shape[1])
        pool_weighted_grad_(sums, gradient_rows, weights, segments.offsets(), d)
        table.zero_padding_(sums)

    return run


def _values_grad(op: Bound) -> Step:
    ids, values, grad = op.one("ids"), op.one("values"), op.one("out@GRAD")
    table, segments, values_grad = op.rows("table"), Segments(ids), op.one("values@GRAD")
    pool_weights_grad = op.kernel(pooling.pool_weights_grad)

    def run() -> None:
        index, d = table.index_of(ids), np.ascontiguousarray(grad.value)
        result = values_grad.reserve(values.value.shape).reshape(-1)
        pool_weights_grad(table.values, index, segments.offsets(), d, result)

    return run
