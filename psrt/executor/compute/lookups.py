"""Rows of tables by id, and the gradients that are added back into rows.

A gradient of a table has one row for each bound row, or for each distinct id of a zero-copy table;
the executor pairs it with the ids. Lookups of one table add into one memory, which the first of
them zeroes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from psrt.core.types import I64, Array
from psrt.executor.compute.lengths import check_one_each
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


class _OneEach:
    """Offsets of slots of one id an example, made again only for batches of another size."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._offsets: I64 = np.zeros((slots, 1), np.int64)

    def of(self, examples: int) -> I64:
        """(slots, examples + 1), read-only."""
        if self._offsets.shape[1] != examples + 1:
            self._offsets = np.tile(np.arange(examples + 1, dtype=np.int64), (self._slots, 1))
        return self._offsets


@computes("slot_rows")
def slot_rows(op: Bound) -> Step:
    slots, table, out = Slots(op, "ids"), op.rows("table"), op.one("out")
    ids, lists, rows_ = op.all("ids"), op.all("lists"), op.all("rows")
    pool_rows, one_each = op.kernel(pooling.pool_rows), _OneEach(slots.count)

    def run() -> None:
        values, width = table.values, table.values.shape[1]
        known, examples = None, 0
        for list_, slot in zip(lists, ids, strict=True):
            list_.offsets = slot.offsets
            if list_.offsets is not known:
                known, examples = list_.offsets, check_one_each(list_)
        result = out.reserve((examples, slots.count * width))
        offsets, pooled = one_each.of(examples), result.reshape(-1, width)
        pool_rows(values, slots.index(table), offsets, pooling.SUM, pooled)
        _alias_parts(result, width, lists, rows_)

    return run


@computes("slot_rows_grad")
def slot_rows_grad(op: Bound) -> Step:
    slots, table, grad = Slots(op, "ids"), op.rows("table"), op.one("out@GRAD")
    lists, rows_ = op.all("lists@GRAD"), op.all("rows@GRAD")
    accumulator, add_slots_ = _accumulator(op), op.kernel(pooling.add_slots_)
    order = np.array(op.attrs["order"], np.int64)

    def run() -> None:
        sums, width = accumulator(), table.values.shape[1]
        d, stride = flat_rows(grad.value)
        add_slots_(sums, slots.gradient_rows(table), order, d, stride)
        table.zero_padding_(sums)
        _alias_parts(grad.value, width, lists, rows_)

    return run


def _alias_parts(joined: Array, width: int, *parts: list[Cell]) -> None:
    """Set each of `parts`, the cells of all slots, to the columns of its slot."""
    for number, cells in enumerate(zip(*parts, strict=True)):
        part = joined[:, number * width : (number + 1) * width]
        for cell in cells:
            cell.alias(part)


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
