"""Geo's arithmetic: deltas since the last agreement, and the merge of agreed values.

For every number a trainer keeps `train`, which its optimizer moves, and `old`, the last agreed
value. On the way out, `delta = (train − old) / T; old += delta`, and the pserver adds `delta` to
its p with equal rounding; on the way back, `train += p − old; old = p` (the scheme of Geo-SGD in
PaddlePaddle). A number without local progress (train = old) becomes p exactly: a rounded difference
would add progress in its last bit, and replicas would never be equal.

For dense blocks, and for rows of a slab with `train` and `old` at two columns. Nothing else may
touch them meanwhile.
"""

from __future__ import annotations

import numpy as np

from psrt.core.types import F32, I32, I64, U8
from psrt.kernels.jit import device, kernel
from psrt.kernels.lowlevel import AHEAD, prefetch_row
from psrt.kernels.optimizers import UPDATES_WORD
from psrt.kernels.tables.row_layout import ID_WORD


@device
def give_(train: F32, old: F32, trainers: float, delta: F32) -> bool:
    """Write `delta` (n,), move `old` (n,); returns True if any delta is not 0."""
    has_changed = False
    for i in range(len(delta)):
        delta[i] = (train[i] - old[i]) / trainers
        old[i] += delta[i]
        has_changed |= delta[i] != 0.0
    return has_changed


@device
def take_(train: F32, old: F32, agreed: F32) -> None:
    """`train` (n,) and `old` (n,) from the values `agreed` (n,) of pservers."""
    for i in range(len(agreed)):
        own = train[i]
        others = agreed[i] - old[i]
        train[i] = agreed[i] if own == old[i] else own + others
        old[i] = agreed[i]


@kernel("const f4[::1], f4[::1], f4, f4[::1] -> b1", group="table")
def give_block_(train: F32, old: F32, trainers: float, delta: F32) -> bool:
    """`give_` of a whole dense parameter."""
    return give_(train, old, trainers, delta)


@kernel("f4[::1], f4[::1], const f4[::1] -> void", group="table")
def take_block_(train: F32, old: F32, agreed: F32) -> None:
    """`take_` of a whole dense parameter."""
    take_(train, old, agreed)


@kernel("f4[:, ::1], i8, i8, const i4[::1], f4, i8[::1], f4[:, ::1] -> i8", group="table")
def give_rows_(
    slab: F32, at: int, old_at: int, slots: I32, trainers: float, ids: I64, deltas: F32
) -> int:
    """`give_` of the rows `slots` (n,), which contain their ids.

    Fills the first lines of `ids` (n,) and `deltas` (n, d) with the changed rows, and returns their
    number.
    """
    keys, width, count = slab.view(np.int64), deltas.shape[1], 0
    for k in range(len(slots)):
        _prefetch(slab, slots, k)
        row = slab[slots[k]]
        ids[count] = keys[slots[k], ID_WORD // 2]
        train, old = row[at : at + width], row[old_at : old_at + width]
        count += give_(train, old, trainers, deltas[count])
    return count


@kernel("f4[:, ::1], i8, i8, const i4[::1], const f4[:, ::1] -> void", group="table")
def take_rows_(slab: F32, at: int, old_at: int, slots: I32, agreed: F32) -> None:
    """`take_` of the rows `slots` (n,) by `agreed` (n, d)."""
    width = agreed.shape[1]
    for k in range(len(slots)):
        _prefetch(slab, slots, k)
        row = slab[slots[k]]
        take_(row[at : at + width], row[old_at : old_at + width], agreed[k])


@kernel("const i4[::1], u1[::1], i4[::1], i8 -> i8", group="table")
def note_(found: I32, is_noted: U8, noted: I32, count: int) -> int:
    """Append those of `found` (n,) that `is_noted` (rows,) does not mark to the first `count` of
    `noted`; returns the new count."""
    for k in range(len(found)):
        slot = found[k]
        noted[count] = slot
        count += not is_noted[slot]
        is_noted[slot] = 1
    return count


@kernel("const f4[:, ::1], i8, i8, i8, i8, i4[::1] -> i8", group="table")
def trained_(slab: F32, at: int, old_at: int, width: int, first: int, slots: I32) -> int:
    """Write those of the `slots` (n,) from `first` on whose rows were updated, or have `train` and
    `old` that differ; returns their number."""
    headers, count = slab.view(np.int32), 0
    for slot in range(first, first + len(slots)):
        row, is_trained = slab[slot], headers[slot, UPDATES_WORD] > 0
        for i in range(width):
            is_trained |= row[at + i] != row[old_at + i]
        slots[count] = slot
        count += is_trained
    return count


@device
def _prefetch(slab: F32, slots: I32, k: int) -> None:
    if k + AHEAD < len(slots):
        prefetch_row(slab, int(slots[k + AHEAD]))
