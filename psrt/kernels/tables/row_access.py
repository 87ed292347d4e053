"""Fused passes over one stripe of a sparse table: find rows by id, to read or to update them.

A stripe is an index (`leaves`) and a slab of rows (`row_layout`). A batch is grouped by stripe once
(`routing`). Every kernel then gets the positions `order` of its stripe's ids in the batch, and
reads or writes the caller's arrays in place, without a gathered copy. `found` holds hints, then
slots: see `row_lookup`. Callers hold the stripe's lock and have reserved room.

Reading never creates a row: an absent row reads as its initial value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.core.types import F32, I32, I64, U32
from psrt.kernels.jit import device, kernel
from psrt.kernels.lowlevel import copy_row, mix64
from psrt.kernels.optimizers import UPDATES_WORD, VERSION_WORD
from psrt.kernels.tables import leaves
from psrt.kernels.tables.initialize import initial_row
from psrt.kernels.tables.leaves import CELL_BITS, COUNT, EMPTY, LIMIT
from psrt.kernels.tables.row_layout import ID_WORD
from psrt.kernels.tables.row_lookup import cell_for, is_at, probe_ahead, probe_first, slot_for

_ID = ID_WORD // 2  # of a row in words of 8 bytes
FEW = 64  # up to so many rows, `read_few_rows` is faster


@device
def read_rows_(
    directory: I32,
    cells: U32,
    slab: F32,
    size: int,
    at: int,
    ids: I64,
    order: I32,
    found: I32,
    kind: int,
    a: float,
    b: float,
    seed: int,
    out: F32,
) -> None:
    """`out[i]` (n, d) = weights of row `ids[i]` for all i in `order`; `found` (n,) = their slots.

    Finding and copying are one loop: a second one would miss every row's page again (a fifth of the
    time of 13,312 rows of 16).
    """
    keys, words = slab.view(np.int64), at + out.shape[1]
    probe_first(directory, cells, slab, ids, order, found, words, 0)
    for k in range(len(order)):
        probe_ahead(directory, cells, slab, ids, order, found, words, k)
        i = order[k]
        target = out[i]
        slot = slot_for(directory, cells, keys, size, found[k], ids[i])
        found[k] = slot
        if slot < 0:
            initial_row(kind, a, b, seed, ids[i], target)
        else:
            copy_row(target, slab[slot, at:])


_READ_ROWS = (
    "const i4[::1], const u4[::1], const f4[:, ::1], i8, i8, const i8[::1], const i4[::1], "
    "i4[::1], i8, f4, f4, i8, f4[:, ::1] -> void"
)


@kernel(_READ_ROWS, group="pserver table")
def read_rows(
    directory: I32,
    cells: U32,
    slab: F32,
    size: int,
    at: int,
    ids: I64,
    order: I32,
    found: I32,
    kind: int,
    a: float,
    b: float,
    seed: int,
    out: F32,
) -> None:
    """See `read_rows_`."""
    read_rows_(directory, cells, slab, size, at, ids, order, found, kind, a, b, seed, out)


@kernel(_READ_ROWS, group="pserver table", brief=True)
def read_few_rows(
    directory: I32,
    cells: U32,
    slab: F32,
    size: int,
    at: int,
    ids: I64,
    order: I32,
    found: I32,
    kind: int,
    a: float,
    b: float,
    seed: int,
    out: F32,
) -> None:
    """`read_rows` of a few, with the interpreter's lock: its caller need not wait for it again."""
    read_rows_(directory, cells, slab, size, at, ids, order, found, kind, a, b, seed, out)


@device
def enter_(
    cells: U32, hashes: U32, headers: I32, keys: I64, at: int, cell: Any, id_: int, slot: int
) -> None:
    """Make a row for `id_` in `slot`: its cell, its hash and its header of `at` words."""
    hashed = mix64(np.uint64(id_))
    cells[cell] = leaves.tag_of(hashed) | np.uint32(slot)
    hashes[slot] = np.uint32(hashed)
    for word in range(at):
        headers[slot, word] = 0
    keys[slot, _ID] = id_


@kernel(
    "const i4[::1], u4[::1], i4[:, ::1], u4[::1], i8[::1], f4[:, ::1], i8, const i8[::1], "
    "const i4[::1], i4[::1], i8, i8, i8, i8 -> i8",
    group="pserver table",
)
def touch_(
    directory: I32,
    cells: U32,
    facts: I32,
    hashes: U32,
    size: I64,
    slab: F32,
    at: int,
    ids: I64,
    order: I32,
    found: I32,
    begin: int,
    version: int,
    seen_at: int,
    hour: int,
) -> int:
    """`found` (n,) = slots of rows `ids[order]` from position `begin` on. Returns the end, n.

    An absent row gets slot `size[0]`, which rises, and a header, the words before `at`. If its leaf
    is full, its position is returned instead, with the complement of a cell of the leaf in
    `found`. With `version` ≥ 0 headers get it and count one more update; with `seen_at` ≥ 0 they
    get the hour. (A separate pass would miss every row again: 13,312 rows in 730 instead of
    490 µs.) The updates are a separate loop: here each mispredicted probe would stall one.
    """
    keys, headers, words = slab.view(np.int64), slab.view(np.int32), slab.shape[1]
    probe_first(directory, cells, slab, ids, order, found, words, begin)
    for k in range(begin, len(order)):
        probe_ahead(directory, cells, slab, ids, order, found, words, k)
        id_ = ids[order[k]]
        slot = np.int64(found[k])
        if not is_at(keys, size[0], slot, id_):
            cell = cell_for(directory, cells, keys, found[k], id_)
            if cells[cell] == EMPTY:
                leaf = cell >> CELL_BITS
                if facts[leaf, COUNT] >= facts[leaf, LIMIT]:
                    found[k] = ~cell
                    return k
                enter_(cells, hashes, headers, keys, at, cell, id_, size[0])
                facts[leaf, COUNT] += 1
                size[0] += 1
            slot = leaves.slot_of(cells[cell])
        found[k] = slot
        if version >= 0:
            headers[slot, VERSION_WORD] = version
            headers[slot, UPDATES_WORD] += 1
            if seen_at >= 0:
                headers[slot, seen_at] = hour
    return len(order)


@kernel(
    "f4[:, ::1], i8, i8, i8, i8, i8, const f4[::1], i8, f4, f4, i8 -> void", group="pserver table"
)
def begin_rows_(
    slab: F32,
    first: int,
    end: int,
    at: int,
    width: int,
    state_at: int,
    first_state: F32,
    kind: int,
    a: float,
    b: float,
    seed: int,
) -> None:
    """Write initial weights and `first_state` (words,) of rows `first` to `end`, which have their
    headers. With `width` 0 the caller writes the weights."""
    keys = slab.view(np.int64)
    for slot in range(first, end):
        row = slab[slot]
        initial_row(kind, a, b, seed, keys[slot, _ID], row[at : at + width])
        for word in range(len(first_state)):
            row[state_at + word] = first_state[word]
