"""Offsets and row indices for pooling kernels, and pooling of ragged vars.

Kernels pool several slots in one call; a ragged var is one slot whose rows are in order. Joined
arrays are kept from step to step: a step allocates nothing.
"""

from __future__ import annotations

import math

import numpy as np

from psrt.core.types import I32, I64, Array
from psrt.executor.compute.registry import Bound, Step, computes, flat_rows
from psrt.executor.memory import BoundRows, Cell, join, rows_of_whole
from psrt.kernels.ops import POOLS, pooling


class InOrder:
    """0, 1, 2, …: the index of rows in order."""

    def __init__(self) -> None:
        self._numbers: I32 = np.empty(0, np.int32)

    def index(self, count: int) -> I32:
        if count > len(self._numbers):
            self._numbers = np.arange(count + count // 4, dtype=np.int32)
        return self._numbers[:count]


class Segments:
    """Offsets of each example's elements, for a ragged var or for (rows, k) ids."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        self._regular: I64 = np.zeros(1, np.int64)

    def offsets(self) -> I64:
        """(examples + 1,) int64, read-only."""
        offsets = self._cell.offsets
        if offsets is not None:
            return offsets
        examples, each = self._cell.value.shape
        if len(self._regular) != examples + 1:
            self._regular = np.arange(0, examples * each + 1, each, dtype=np.int64)
        return self._regular


class Slots:
    """The ids of several slots, argument `slot` of an op, concatenated slot by slot."""

    def __init__(self, op: Bound, slot: str) -> None:
        self._slots = op.all(slot)
        self.count = len(self._slots)
        self._segments = [Segments(ids) for ids in self._slots]
        self._are_regular = not any(op.vars[ids.name].ragged for ids in self._slots)
        self._ids = Cell("joined ids", np.int64)
        self._index = Cell("joined index", np.int32)
        self._offsets = Cell("joined offsets", np.int64)

    def index(self, table: BoundRows) -> I32:
        """The row of the table for each id."""
        if table.is_whole:
            return rows_of_whole(table.parameter, self._joined_ids(table))
        return self._joined([table.index_of(ids) for ids in self._slots])

    def gradient_rows(self, table: BoundRows) -> I32:
        """The row of the gradient to which each id adds."""
        if not table.has_own_gradient_rows:
            return self.index(table)
        gradient_rows = table.gradient_rows_of(self._slots)
        if gradient_rows is not None:
            return gradient_rows
        return self._joined([table.gradient_row_of(ids) for ids in self._slots])

    def _joined_ids(self, table: BoundRows) -> Array:
        if table.joined_ids is not None and table.joined_ids.are_of(self._slots):
            return table.joined_ids.ids()
        parts = [ids.value.reshape(-1) for ids in self._slots]
        if self.count == 1:
            return parts[0]
        total = sum([len(part) for part in parts])
        return join(parts, self._ids.reserve((total,)))

    def _joined(self, parts: list[I32]) -> I32:
        if self.count == 1:
            return parts[0]
        total = sum([len(part) for part in parts])
        return join(parts, self._index.reserve((total,)))

    def offsets(self) -> I64:
        """(slots, examples + 1): offsets of each example's ids within each slot."""
        joined = self._offsets.value
        if self._are_regular and {len(ids.value) for ids in self._slots} == {joined.shape[-1] - 1}:
            return joined
        parts = [segments.offsets() for segments in self._segments]
        if self.count == 1:
            return parts[0][None]
        joined = self._offsets.reserve((self.count, len(parts[0])))
        np.concatenate(parts, out=joined.reshape(-1))
        return joined


def width_of(op: Bound, slot: str) -> int:
    """Width of an element of a ragged var, or of a row of an ordinary one."""
    return math.prod(op.shapes(slot)[0][1:])


@computes("sequence_pool")
def sequence_pool(op: Bound) -> Step:
    x, out, argmax, pool = op.one("x"), op.one("out"), op.maybe("argmax"), op.attrs["pool"]
    pool_rows, pool_max = op.kernel(pooling.pool_rows), op.kernel(pooling.pool_max)
    segments, numbers, width = Segments(x), InOrder(), width_of(op, "x")

    def run() -> None:
        offsets = segments.offsets()[None]
        values = np.ascontiguousarray(x.value).reshape(-1, width)
        index = numbers.index(len(values))
        result = out.reserve((offsets.shape[1] - 1, width))
        if argmax is None:
            pool_rows(values, index, offsets, POOLS[pool], result)
        else:
            pool_max(values, index, offsets, result, argmax.reserve(result.shape))

    return run


@computes("sequence_pool_grad")
def sequence_pool_grad(op: Bound) -> Step:
    x, grad, x_grad = op.one("x"), op.one("out@GRAD"), op.one("x@GRAD")
    argmax, pool = op.maybe("argmax"), op.attrs["pool"]
    pool_rows_grad_ = op.kernel(pooling.pool_rows_grad_)
    pool_max_grad_ = op.kernel(pooling.pool_max_grad_)
    segments, numbers, width = Segments(x), InOrder(), width_of(op, "x")

    def run() -> None:
        result = x_grad.reserve(x.value.shape)
        result.fill(0)
        rows = result.reshape(-1, width)
        if argmax is None:
            index = numbers.index(len(rows))
            offsets, d = segments.offsets()[None], flat_rows(grad.value)
            pool_rows_grad_(rows, index, offsets, POOLS[pool], *d)
        else:
            pool_max_grad_(rows, argmax.value, np.ascontiguousarray(grad.value))

    return run
