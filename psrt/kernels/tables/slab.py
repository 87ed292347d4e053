"""Fused passes over one stripe of a sparse table: find rows by id, to read or to update them.

A stripe is an index (`leaves`) and a slab of rows (`row_layout`). A batch is grouped by stripe once
(`routing`). Every kernel then gets the positions `order` of its stripe's ids in the batch, and
reads or writes the caller's arrays in place: nothing is gathered in between. Callers hold the
stripe's lock and have reserved room.

`found` (n,) says where rows are. A kernel gets it with −1, or with the slots where rows stood when
they were found last, and leaves their slots in it. A trainer pushes what it has pulled, and rows
move only when others are dropped, so most such hints hold; as a row bears its id, one look tells,
and no cell of the index is needed (6,656 of 1 M rows of 16: 370 → 240 µs an update by SGD).

Reading never creates a row: a row that is not there reads as its initial value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.core.types import F32, I32, I64, U32
from psrt.kernels.jit import device, kernel
from psrt.kernels.lowlevel import AHEAD, copy_row, mix64, prefetch, prefetch_words
from psrt.kernels.optimizers import UPDATES_WORD, VERSION_WORD
from psrt.kernels.tables import leaves
from psrt.kernels.tables.initialize import initial_row
from psrt.kernels.tables.leaves import CELL_BITS, COUNT, EMPTY, LIMIT
from psrt.kernels.tables.row_layout import ID_WORD

_ID = ID_WORD // 2  # of a row in words of 8 bytes
FEW = 64  # rows for which `read_few_rows` is there


@device
def note_place(directory: I32, cells: U32, ids: I64, order: I32, found: I32, k: int) -> None:
    """Where the probe for the k-th id begins, into `found`, unless a hint is there; fetch that
    cell. Cells stand in `found` as their complement, which is negative."""
    if found[k] < 0:
        place = leaves.place_of(directory, mix64(np.uint64(ids[order[k]])))
        found[k] = ~place
        prefetch(cells, place, 0)


@device
def sight_row(cells: U32, slab: F32, ids: I64, order: I32, found: I32, words: int, k: int) -> None:
    """The cell that holds the k-th id or is empty, into `found` in the place of where the probe
    begins; fetch `words` of the row, or of the one that a hint names."""
    if found[k] >= 0:
        prefetch_words(slab, int(found[k]), words)
        return
    tag = leaves.tag_of(mix64(np.uint64(ids[order[k]])))
    cell = leaves.sighted(cells, ~found[k], tag)
    found[k] = ~cell
    if cells[cell] != EMPTY:
        prefetch_words(slab, leaves.slot_of(cells[cell]), words)


@device
def look_ahead(
    directory: I32, cells: U32, slab: F32, ids: I64, order: I32, found: I32, words: int, k: int
) -> None:
    """What a loop of probes needs later: the cells of the id 2 · AHEAD further on, and the row of
    the id AHEAD further on, of which `words` will be looked at."""
    if k + 2 * AHEAD < len(order):
        note_place(directory, cells, ids, order, found, k + 2 * AHEAD)
    if k + AHEAD < len(order):
        sight_row(cells, slab, ids, order, found, words, k + AHEAD)


@device
def look_first(
    directory: I32, cells: U32, slab: F32, ids: I64, order: I32, found: I32, words: int, k: int
) -> None:
    """What `look_ahead` has not done when a loop begins at `k`."""
    for later in range(k, min(k + 2 * AHEAD, len(order))):
        note_place(directory, cells, ids, order, found, later)
    for later in range(k, min(k + AHEAD, len(order))):
        sight_row(cells, slab, ids, order, found, words, later)


@device
def is_at(keys: I64, size: Any, slot: Any, id_: int) -> Any:
    """Whether the row of an id is where a hint says; `size` rows exist."""
    return 0 <= slot < size and keys[slot, _ID] == id_


@device
def cell_for(directory: I32, cells: U32, keys: I64, noted: Any, id_: int) -> Any:
    """The cell that holds an id, or else the empty one where it belongs. `noted` is the complement
    of what was sighted, or a hint that did not hold."""
    sight = np.int64(~noted)
    if noted >= 0:
        hashed = mix64(np.uint64(id_))
        sight = leaves.sighted(cells, leaves.place_of(directory, hashed), leaves.tag_of(hashed))
    return leaves.probe(cells, keys, sight, id_)


@device
def slot_for(directory: I32, cells: U32, keys: I64, size: int, noted: Any, id_: int) -> Any:
    """The slot of an id, −1 if it has none; `noted` as in `found`."""
    slot = np.int64(noted)
    if not is_at(keys, size, slot, id_):
        slot = leaves.slot_of(cells[cell_for(directory, cells, keys, noted, id_)])
    return slot


@kernel(
    "const i4[::1], const u4[::1], const f4[:, ::1], i8, const i8[::1], const i4[::1], i4[::1], i8 "
    "-> void",
    group="pserver table",
)
def find(
    directory: I32,
    cells: U32,
    slab: F32,
    size: int,
    ids: I64,
    order: I32,
    found: I32,
    words: int,
) -> None:
    """`found` (n,) = slots of rows `ids[order]`, −1 where there is none; the caller will look at
    the first `words` of each of the `size` rows."""
    keys = slab.view(np.int64)
    look_first(directory, cells, slab, ids, order, found, words, 0)
    for k in range(len(order)):
        look_ahead(directory, cells, slab, ids, order, found, words, k)
        found[k] = slot_for(directory, cells, keys, size, found[k], ids[order[k]])


@device
def prefetch_found(slab: F32, found: I32, words: int, k: int) -> None:
    """Fetch the first words of the row that this loop reaches `AHEAD` iterations later."""
    if k + AHEAD < len(found) and found[k + AHEAD] >= 0:
        prefetch_words(slab, int(found[k + AHEAD]), words)


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
    look_first(directory, cells, slab, ids, order, found, words, 0)
    for k in range(len(order)):
        look_ahead(directory, cells, slab, ids, order, found, words, k)
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
    """`read_rows` of a few: whoever has them need not wait for the interpreter's lock again."""
    read_rows_(directory, cells, slab, size, at, ids, order, found, kind, a, b, seed, out)


@device
def enter_(
    cells: U32, hashes: U32, headers: I32, keys: I64, at: int, cell: Any, id_: int, slot: int
) -> None:
    """A row for `id_` in `slot`, to which `cell` points: its hash and its header, `at` words."""
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
    """`found` (n,) = slots of rows `ids[order]` from position `begin` on; the end, n.

    A row that is not there gets slot `size[0]`, which rises; of the row the header is written, the
    words before `at`. If the leaf of one is full, its position is returned instead, with the
    complement of a cell of the leaf in `found`. With `version` ≥ 0 headers bear it, and one more
    update; if `seen_at` ≥ 0, the hour. (In a pass of its own that would be another miss for each
    row: 13,312 rows in 730 instead of 490 µs.) The updates are a loop of their own: here each
    mispredicted probe would stall one.
    """
    keys, headers, words = slab.view(np.int64), slab.view(np.int32), slab.shape[1]
    look_first(directory, cells, slab, ids, order, found, words, begin)
    for k in range(begin, len(order)):
        look_ahead(directory, cells, slab, ids, order, found, words, k)
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
    """Rows `first` to `end`, of which the headers are written: initial weights, and `first_state`
    (words,). With `width` 0 somebody else writes the weights."""
    keys = slab.view(np.int64)
    for slot in range(first, end):
        row = slab[slot]
        initial_row(kind, a, b, seed, keys[slot, _ID], row[at : at + width])
        for word in range(len(first_state)):
            row[state_at + word] = first_state[word]
