"""Many rows to one vector per example: sum, average and max over segments, and their gradients.

Example i owns positions `offsets[i]:offsets[i + 1]` of `index`, and `index` names rows of `rows`:
embedding lookup and pooling are one pass, nothing is gathered in between. An empty segment gives 0.

The result of example i is written to `out[i, column:column + d]`, so that the slots of one table
land side by side in one C-contiguous array without a concat. Column slices `out[:, a:b]` are
accepted too, at the price of a copy: loops over strided rows do not vectorise.

Sums run in order of position; gradients are added to `grad_rows`, which the caller zeroes.
"""

from __future__ import annotations

import numpy as np

from psrt.core.types import F32, I32, I64
from psrt.kernels.jit import kernel

EMPTY = -1  # in `argmax`: the segment had no rows


@kernel("const f4[:, ::1], const i4[::1], const i8[::1], b1, f4[:, ::1], i8 -> void", "trainer")
def _pool(rows: F32, index: I32, offsets: I64, average: bool, out: F32, column: int) -> None:
    for i in range(len(out)):
        target = out[i, column : column + rows.shape[1]]
        for j in range(len(target)):
            target[j] = 0.0
        for position in range(offsets[i], offsets[i + 1]):
            row = rows[index[position]]
            for j in range(len(target)):
                target[j] += row[j]
        count = np.float32(offsets[i + 1] - offsets[i])
        if average and count > 1:
            for j in range(len(target)):
                target[j] /= count


@kernel("f4[:, ::1], const i4[::1], const i8[::1], b1, const f4[:, ::1], i8 -> void", "trainer")
def _pool_grad_(
    grad_rows: F32, index: I32, offsets: I64, average: bool, grad_out: F32, column: int
) -> None:
    for i in range(len(grad_out)):
        source = grad_out[i, column : column + grad_rows.shape[1]]
        count = np.float32(offsets[i + 1] - offsets[i]) if average else np.float32(1.0)
        for position in range(offsets[i], offsets[i + 1]):
            row = grad_rows[index[position]]
            for j in range(len(source)):
                row[j] += source[j] / count


@kernel(
    "const f4[:, ::1], const i4[::1], const i8[::1], f4[:, ::1], i8, i4[:, ::1] -> void", "trainer"
)
def _pool_max(rows: F32, index: I32, offsets: I64, out: F32, column: int, argmax: I32) -> None:
    for i in range(len(out)):
        for j in range(rows.shape[1]):
            best, best_row = np.float32(0.0), EMPTY
            for position in range(offsets[i], offsets[i + 1]):
                value = rows[index[position], j]
                if best_row == EMPTY or value > best:
                    best, best_row = value, index[position]
            out[i, column + j] = best
            argmax[i, j] = best_row


@kernel("f4[:, ::1], const i4[:, ::1], const f4[:, ::1], i8 -> void", "trainer")
def _pool_max_grad_(grad_rows: F32, argmax: I32, grad_out: F32, column: int) -> None:
    for i in range(len(grad_out)):
        for j in range(grad_rows.shape[1]):
            if argmax[i, j] != EMPTY:
                grad_rows[argmax[i, j], j] += grad_out[i, column + j]


def pool_rows(
    rows: F32, index: I32, offsets: I64, out: F32, pool: str = "sum", column: int = 0
) -> None:
    """`out` (b, ≥ column + d) = "sum" or "average" of `rows` (m, d)[`index` (n,)] by segment."""
    whole = _whole(out)
    _check(whole, offsets, column, rows)
    _pool(rows, index, offsets, _is_average(pool), whole, column)
    _hand_back(whole, out)


def pool_rows_grad_(
    grad_rows: F32, index: I32, offsets: I64, grad_out: F32, pool: str = "sum", column: int = 0
) -> None:
    """`grad_rows` (m, d)[index] += gradient of `pool_rows`, given `grad_out` shaped like `out`."""
    grad_out = np.ascontiguousarray(grad_out)
    _check(grad_out, offsets, column, grad_rows)
    _pool_grad_(grad_rows, index, offsets, _is_average(pool), grad_out, column)


def pool_rows_max(
    rows: F32, index: I32, offsets: I64, out: F32, argmax: I32, column: int = 0
) -> None:
    """`out` (b, ≥ column + d) = column-wise maximum of each segment; `argmax` (b, d) int32 = the
    row of `rows` (m, d) it came from, the first one on ties, or EMPTY."""
    whole = _whole(out)
    _check(whole, offsets, column, rows)
    _pool_max(rows, index, offsets, whole, column, argmax)
    _hand_back(whole, out)


def pool_rows_max_grad_(grad_rows: F32, argmax: I32, grad_out: F32, column: int = 0) -> None:
    """`grad_rows` (m, d)[argmax] += `grad_out`: only the maximum gets a gradient."""
    _pool_max_grad_(grad_rows, argmax, np.ascontiguousarray(grad_out), column)


def segment_pool(values: F32, offsets: I64, out: F32, pool: str = "sum") -> None:
    """`out` (b, d) = "sum" or "average" of each segment of `values` (n, d)."""
    pool_rows(values, _identity(values), offsets, out, pool)


def segment_pool_grad(grad_out: F32, offsets: I64, grad_values: F32, pool: str = "sum") -> None:
    """`grad_values` (n, d) = gradient of `segment_pool`, given `grad_out` (b, d)."""
    grad_values.fill(0.0)
    pool_rows_grad_(grad_values, _identity(grad_values), offsets, grad_out, pool)


def segment_max(values: F32, offsets: I64, out: F32, argmax: I32) -> None:
    """`out`, `argmax` (b, d) = maximum of each segment of `values` (n, d) and where it stands."""
    pool_rows_max(values, _identity(values), offsets, out, argmax)


def segment_max_grad(grad_out: F32, argmax: I32, grad_values: F32) -> None:
    """`grad_values` (n, d) = gradient of `segment_max`, given `grad_out` (b, d)."""
    grad_values.fill(0.0)
    pool_rows_max_grad_(grad_values, argmax, grad_out)


def _whole(out: F32) -> F32:
    return out if out.flags.c_contiguous else out.copy(order="C")


def _hand_back(whole: F32, out: F32) -> None:
    if whole is not out:
        np.copyto(out, whole)


def _check(out: F32, offsets: I64, column: int, rows: F32) -> None:
    # Kernels do not check bounds, and here a wrong shape would write outside the array.
    if len(offsets) != len(out) + 1 or column + rows.shape[1] > out.shape[1]:
        raise ValueError(
            f"{len(offsets) - 1} segments of width {rows.shape[1]} at column {column} "
            f"do not fit an array of shape {out.shape}"
        )


def _identity(values: F32) -> I32:
    return np.arange(len(values), dtype=np.int32)


def _is_average(pool: str) -> bool:
    if pool not in ("sum", "average"):
        raise ValueError(f"pool {pool!r} is neither sum nor average")
    return pool == "average"
