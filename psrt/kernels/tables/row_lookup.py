"""Lookups of rows by id, from hints or by probes of the index.

`found` (n,) holds slots of rows. A kernel gets it with −1, or with slots of an earlier lookup as
hints, and leaves their slots in it. A trainer pushes the rows that it pulled, and rows move only
when others are dropped, so most hints hold; as a row contains its id, one read of the row checks a
hint, and no cell of the index is needed (6,656 of 1 M rows of 16: 370 → 240 µs an update by SGD).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.core.types import F32, I32, I64, U32
from psrt.kernels.jit import device, kernel
from psrt.kernels.lowlevel import AHEAD, mix64, prefetch, prefetch_words
from psrt.kernels.tables import leaves
from psrt.kernels.tables.leaves import EMPTY
from psrt.kernels.tables.row_layout import ID_WORD

_ID = ID_WORD // 2  # of a row in words of 8 bytes


@device
def begin_probe(directory: I32, cells: U32, ids: I64, order: I32, found: I32, k: int) -> None:
    """Write the first cell of the probe for the k-th id to `found`, unless it has a hint; fetch
    that cell. `found` holds a cell as its complement, which is negative."""
    if found[k] < 0:
        place = leaves.place_of(directory, mix64(np.uint64(ids[order[k]])))
        found[k] = ~place
        prefetch(cells, place, 0)


@device
def match_cell(cells: U32, slab: F32, ids: I64, order: I32, found: I32, words: int, k: int) -> None:
    """Replace the first cell of the k-th probe in `found` by the cell that holds the id or is
    empty; fetch `words` of its row, or of the row that a hint names."""
    if found[k] >= 0:
        prefetch_words(slab, int(found[k]), words)
        return
    tag = leaves.tag_of(mix64(np.uint64(ids[order[k]])))
    cell = leaves.first_match(cells, ~found[k], tag)
    found[k] = ~cell
    if cells[cell] != EMPTY:
        prefetch_words(slab, leaves.slot_of(cells[cell]), words)


@device
def probe_ahead(
    directory: I32, cells: U32, slab: F32, ids: I64, order: I32, found: I32, words: int, k: int
) -> None:
    """Fetch for later turns of a loop of probes: the cells of the id 2 · AHEAD further on, and
    `words` of the row of the id AHEAD further on."""
    if k + 2 * AHEAD < len(order):
        begin_probe(directory, cells, ids, order, found, k + 2 * AHEAD)
    if k + AHEAD < len(order):
        match_cell(cells, slab, ids, order, found, words, k + AHEAD)


@device
def probe_first(
    directory: I32, cells: U32, slab: F32, ids: I64, order: I32, found: I32, words: int, k: int
) -> None:
    """Fetch for the first turns of a loop that begins at `k`: the ids before `probe_ahead`'s."""
    for later in range(k, min(k + 2 * AHEAD, len(order))):
        begin_probe(directory, cells, ids, order, found, later)
    for later in range(k, min(k + AHEAD, len(order))):
        match_cell(cells, slab, ids, order, found, words, later)


@device
def is_at(keys: I64, size: Any, slot: Any, id_: int) -> Any:
    """True if the hint `slot` holds for an id; `size` rows exist."""
    return 0 <= slot < size and keys[slot, _ID] == id_


@device
def cell_for(directory: I32, cells: U32, keys: I64, noted: Any, id_: int) -> Any:
    """The cell that holds an id, or else the empty one where it belongs. `noted` is the complement
    of a matching cell, or a hint that did not hold."""
    sight = np.int64(~noted)
    if noted >= 0:
        hashed = mix64(np.uint64(id_))
        sight = leaves.first_match(cells, leaves.place_of(directory, hashed), leaves.tag_of(hashed))
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
    directory: I32, cells: U32, slab: F32, size: int, ids: I64, order: I32, found: I32, words: int
) -> None:
    """`found` (n,) = slots of rows `ids[order]`, −1 where there is none; the caller will read the
    first `words` of each of the `size` rows."""
    keys = slab.view(np.int64)
    probe_first(directory, cells, slab, ids, order, found, words, 0)
    for k in range(len(order)):
        probe_ahead(directory, cells, slab, ids, order, found, words, k)
        found[k] = slot_for(directory, cells, keys, size, found[k], ids[order[k]])


@device
def prefetch_found(slab: F32, found: I32, words: int, k: int) -> None:
    """Fetch the first words of the row that this loop reaches `AHEAD` iterations later."""
    if k + AHEAD < len(found) and found[k + AHEAD] >= 0:
        prefetch_words(slab, int(found[k + AHEAD]), words)
