"""Pooling the elements of each example, and the choice between kernel and plain form of it.

Float32 goes to `psrt.kernels.pooling`. The plain forms are for float64, that is for gradient
checks; they follow the same contract: `index` names rows of `values`, the result of an example goes
to `out[i, column:column + width]`, and gradients are added.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from psrt.core.types import I32, I64, Array
from psrt.executor.cells import Cell
from psrt.executor.compute.table import Bound, Step, computes
from psrt.kernels import pooling


def offsets_of(cell: Cell) -> I64:
    """Where each example begins among the elements; (rows, k) is k elements an example."""
    if cell.offsets is not None:
        return cell.offsets
    examples, each = cell.value.shape
    return np.arange(0, examples * each + 1, each)


def pool_rows(
    values: Array, index: I32, offsets: I64, out: Array, pool: str, column: int = 0
) -> None:
    """ "sum" or "average" of each example's rows."""
    if values.dtype == np.float32:
        pooling.pool_rows(values, index, offsets, out, pool, column)
        return
    for i, rows, count in _segments(index, offsets, pool):
        out[i, column : column + values.shape[1]] = values[rows].sum(axis=0) / count


def pool_rows_grad_(
    sums: Array, index: I32, offsets: I64, grad: Array, pool: str, column: int = 0
) -> None:
    if sums.dtype == np.float32:
        pooling.pool_rows_grad_(sums, index, offsets, grad, pool, column)
        return
    for i, rows, count in _segments(index, offsets, pool):
        np.add.at(sums, rows, grad[i, column : column + sums.shape[1]] / count)


def pool_max(
    values: Array, index: I32, offsets: I64, out: Array, argmax: I32, column: int = 0
) -> None:
    """The maximum of each column, and the row it came from (the first one)."""
    if values.dtype == np.float32:
        pooling.pool_rows_max(values, index, offsets, out, argmax, column)
        return
    width = values.shape[1]
    for i, rows, _ in _segments(index, offsets, "max"):
        argmax[i] = rows[values[rows].argmax(axis=0)] if len(rows) else pooling.EMPTY
        here = values[argmax[i], np.arange(width)] if len(rows) else np.zeros(width)
        out[i, column : column + width] = here


def pool_max_grad_(sums: Array, argmax: I32, grad: Array, column: int = 0) -> None:
    if sums.dtype == np.float32:
        pooling.pool_rows_max_grad_(sums, argmax, grad, column)
        return
    i, j = np.nonzero(argmax != pooling.EMPTY)
    np.add.at(sums, (argmax[i, j], j), grad[i, column + j])


def _segments(index: I32, offsets: I64, pool: str) -> Iterator[tuple[int, I32, int]]:
    """(example, its rows, what to divide by)."""
    for i, (start, stop) in enumerate(pairwise(offsets)):
        yield i, index[start:stop], max(int(stop - start), 1) if pool == "average" else 1


@computes("sequence_pool")
def sequence_pool(op: Bound) -> Step:
    x, out, argmax, pool = op.one("x"), op.one("out"), op.maybe("argmax"), op.attrs["pool"]

    def run() -> None:
        values, offsets = x.value, offsets_of(x)
        result = out.reserve((len(offsets) - 1, values.shape[1]))
        if argmax is None:
            pool_rows(values, _each(values), offsets, result, pool)
        else:
            pool_max(values, _each(values), offsets, result, argmax.reserve(result.shape))

    return run


@computes("sequence_pool_grad")
def sequence_pool_grad(op: Bound) -> Step:
    x, grad, x_grad = op.one("x"), op.one("out@GRAD"), op.one("x@GRAD")
    argmax, pool = op.maybe("argmax"), op.attrs["pool"]

    def run() -> None:
        result = x_grad.reserve(x.value.shape)
        result.fill(0)
        if argmax is None:
            pool_rows_grad_(result, _each(result), offsets_of(x), grad.value, pool)
        else:
            pool_max_grad_(result, argmax.value, grad.value)

    return run


def _each(values: Array) -> I32:
    """Element i is row i: these values were looked up before."""
    return np.arange(len(values), dtype=np.int32)
