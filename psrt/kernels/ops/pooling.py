"""Rows of each example to one vector, slot by slot: sums, averages, maxima, and their gradients.

Several slots of one table are pooled by one call. `index` (n,) has their rows of
`rows` (m, d), one slot after the other, and `offsets` (slots, b + 1) the range of each example in
its slot: lookup, pooling and concatenation are one pass. `out` (b · slots, d) has the slots of an
example next to each other; an example with none in a slot gets zeros there.

Sums run in order of position; gradients are added to `grad_rows`, which the caller zeroes. Loops
run slot by slot: a batch's rows are numbered in order of slots, so they are read nearly in order.
Those of a large table are at random places, and `pool_rows` prefetches them.
"""

from __future__ import annotations

import math

import numpy as np

from psrt.core.types import F32, I32, I64
from psrt.kernels.jit import device, kernel
from psrt.kernels.lowlevel import AHEAD, FAR_BYTES, prefetch_row

SUM, AVERAGE, SQRT, FIRST, LAST = range(5)
POOLS = {"sum": SUM, "average": AVERAGE, "sqrt": SQRT, "first": FIRST, "last": LAST}
"""By name: Σ, Σ / n, Σ / √n, and the first or last row alone; a maximum has separate kernels."""

EMPTY = -1  # in `argmax`: there were no rows


@device
def _first_of(start: int, stop: int, pool: int) -> int:
    """The first position of an example's `start:stop` that counts."""
    return stop - 1 if pool == LAST else start


@device
def _end_of(start: int, stop: int, pool: int) -> int:
    """The position behind the last that counts."""
    return start + 1 if pool == FIRST else stop


@device
def _divisor(count: int, pool: int) -> np.float32:
    return np.float32(math.sqrt(count) if pool == SQRT else count)


@device
def _divide_(out: F32, offsets: I64, pool: int) -> None:
    slots, width = len(offsets), out.shape[1]
    for i in range(offsets.shape[1] - 1):
        for slot in range(slots):
            count = offsets[slot, i + 1] - offsets[slot, i]
            if count > 1:
                target, divisor = out[i * slots + slot], _divisor(count, pool)
                for j in range(width):
                    target[j] /= divisor


@kernel("const f4[:, ::1], const i4[::1], const i8[:, ::1], i8, f4[:, ::1] -> void", "op")
def pool_rows(rows: F32, index: I32, offsets: I64, pool: int, out: F32) -> None:
    """`out` = the rows of each example and slot, pooled; `pool` is one of the numbers above."""
    slots, base, width = len(offsets), 0, rows.shape[1]
    ahead = AHEAD if rows.size * 4 > FAR_BYTES else len(index)
    for slot in range(slots):
        for i in range(offsets.shape[1] - 1):
            start, stop = base + offsets[slot, i], base + offsets[slot, i + 1]
            for position in range(start + ahead, min(stop + ahead, len(index))):
                prefetch_row(rows, index[position])
            target = out[i * slots + slot]
            if start == stop:
                for j in range(width):
                    target[j] = 0.0
                continue
            first, end = _first_of(start, stop, pool), _end_of(start, stop, pool)
            row = rows[index[first]]
            for j in range(width):
                target[j] = row[j]
            for position in range(first + 1, end):
                other = rows[index[position]]
                for j in range(width):
                    target[j] += other[j]
        base += offsets[slot, -1]
    if pool in (AVERAGE, SQRT):  # in a pass of its own: it would slow sums down by a quarter
        _divide_(out, offsets, pool)


@kernel("f4[:, ::1], const i4[::1], const i8[:, ::1], i8, const f4[::1], i8 -> void", "op")
def pool_rows_grad_(
    grad_rows: F32, index: I32, offsets: I64, pool: int, grad_out: F32, stride: int
) -> None:
    """`grad_rows` (m, d)[index] += gradient of `pool_rows`.

    `grad_out` is flat: that of example i begins at i · `stride`, slot after slot, so that it may be
    a part of the columns of something wider.
    """
    slots, base, width = len(offsets), 0, grad_rows.shape[1]
    for slot in range(slots):
        for i in range(offsets.shape[1] - 1):
            start, stop = base + offsets[slot, i], base + offsets[slot, i + 1]
            if start == stop:
                continue
            at = i * stride + slot * width
            source, divisor = grad_out[at : at + width], _divisor(stop - start, pool)
            is_mean = pool in (AVERAGE, SQRT)
            for position in range(_first_of(start, stop, pool), _end_of(start, stop, pool)):
                target = grad_rows[index[position]]
                if is_mean:
                    for j in range(width):
                        target[j] += source[j] / divisor
                else:
                    for j in range(width):
                        target[j] += source[j]
        base += offsets[slot, -1]


@kernel("f4[:, ::1], const i4[::1], const i8[::1], const f4[::1], i8 -> void", "trainer")
def add_slots_(grad_rows: F32, index: I32, order: I64, grad_out: F32, stride: int) -> None:
    """`grad_rows` (m, d)[index] += the gradients of slots of one row an example, in this `order`.

    `index` (slots · b,) is slot by slot; `grad_out` is as in `pool_rows_grad_`.
    """
    width, examples = grad_rows.shape[1], len(index) // len(order)
    for slot in order:
        for i in range(examples):
            target, at = grad_rows[index[slot * examples + i]], i * stride + slot * width
            for j in range(width):
                target[j] += grad_out[at + j]


@kernel(
    "const f4[:, ::1], const i4[::1], const i8[:, ::1], f4[:, ::1], i4[:, ::1] -> void", "trainer"
)
def pool_max(rows: F32, index: I32, offsets: I64, out: F32, argmax: I32) -> None:
    """`out` = the maximum by column; `argmax`, shaped like it, the row of `rows` it came from, the
    first one of equals, or EMPTY. NaN is the maximum, as for numpy."""
    slots, base = len(offsets), 0
    for slot in range(slots):
        for i in range(offsets.shape[1] - 1):
            start, stop = base + offsets[slot, i], base + offsets[slot, i + 1]
            best, where = out[i * slots + slot], argmax[i * slots + slot]
            for j in range(len(best)):
                best[j] = rows[index[start], j] if start < stop else np.float32(0.0)
                where[j] = index[start] if start < stop else EMPTY
            for position in range(start + 1, stop):
                at = index[position]
                row = rows[at]
                for j in range(len(best)):
                    wins = best[j] == best[j] and not row[j] <= best[j]  # NaN does
                    where[j] = at if wins else where[j]
                    best[j] = row[j] if wins else best[j]
        base += offsets[slot, -1]


@kernel("f4[:, ::1], const i4[:, ::1], const f4[:, ::1] -> void", "op")
def pool_max_grad_(grad_rows: F32, argmax: I32, grad_out: F32) -> None:
    """`grad_rows` (m, d)[argmax] += `grad_out`: only the maximum gets a gradient."""
    for i in range(len(grad_out)):
        for j in range(grad_rows.shape[1]):
            if argmax[i, j] != EMPTY:
                grad_rows[argmax[i, j], j] += grad_out[i, j]


# --- rows that count differently ------------------------------------------------------------------


@kernel(
    "const f4[:, ::1], const i4[::1], const f4[::1], const i8[::1], f4[:, ::1] -> void", "trainer"
)
def pool_weighted(rows: F32, index: I32, weights: F32, offsets: I64, out: F32) -> None:
    """`out` (b, d) = Σ `weights` (n,) · rows[`index` (n,)] by example; `offsets` (b + 1,)."""
    for i in range(len(out)):
        target = out[i]
        for j in range(len(target)):
            target[j] = 0.0
        for position in range(offsets[i], offsets[i + 1]):
            row, weight = rows[index[position]], weights[position]
            for j in range(len(target)):
                target[j] += weight * row[j]


@kernel(
    "f4[:, ::1], const i4[::1], const f4[::1], const i8[::1], const f4[:, ::1] -> void", "trainer"
)
def pool_weighted_grad_(
    grad_rows: F32, index: I32, weights: F32, offsets: I64, grad_out: F32
) -> None:
    """`grad_rows` (m, d)[index] += weight · `grad_out` (b, d)."""
    for i in range(len(grad_out)):
        source = grad_out[i]
        for position in range(offsets[i], offsets[i + 1]):
            target, weight = grad_rows[index[position]], weights[position]
            for j in range(len(source)):
                target[j] += weight * source[j]


@kernel(
    "const f4[:, ::1], const i4[::1], const i8[::1], const f4[:, ::1], f4[::1] -> void", "trainer"
)
def pool_weights_grad(
    rows: F32, index: I32, offsets: I64, grad_out: F32, grad_weights: F32
) -> None:
    """`grad_weights` (n,) = row · `grad_out` (b, d) of its example."""
    for i in range(len(grad_out)):
        source = grad_out[i]
        for position in range(offsets[i], offsets[i + 1]):
            row, total = rows[index[position]], np.float32(0.0)
            for j in range(len(source)):
                total += row[j] * source[j]
            grad_weights[position] = total
