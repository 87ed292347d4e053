"""Map from int64 ids to int32 slots 0, 1, 2, … given out in order of insertion.

Open addressing with linear probing (Knuth, TAOCP 3, algorithm 6.4 L) over `slots`, a power-of-two
table of slot numbers, −1 where empty. The ids themselves stand in `keys` by slot: `keys[s]` is the
id of slot s. So any int64 is a legal id, cells cost 4 bytes, and ids can be listed in slot order.

`find`, `find_or_insert` are device functions for fused kernels; `IdMap` owns the arrays and grows
them. Nothing here locks: the caller owns the map's lock. There is no removal.
"""

from __future__ import annotations

import numpy as np

from psrt.core.types import I32, I64
from psrt.kernels.hashing import mix64
from psrt.kernels.jit import device, kernel

_SMALLEST = 16


@device
def first_cell(slots: I32, id_: int) -> np.int64:
    """Where the probe for `id_` begins."""
    return np.int64(mix64(np.uint64(id_)) & np.uint64(len(slots) - 1))


@device
def probe(keys: I64, slots: I32, id_: int) -> np.int64:
    """The cell that holds `id_`, or else the empty cell where it belongs."""
    mask = np.uint64(len(slots) - 1)
    cell = mix64(np.uint64(id_)) & mask
    while True:
        slot = slots[cell]
        if slot < 0 or keys[slot] == id_:
            return np.int64(cell)
        cell = (cell + np.uint64(1)) & mask


@device
def find(keys: I64, slots: I32, id_: int) -> int:
    """Slot of `id_`, or −1."""
    slot: int = slots[probe(keys, slots, id_)]
    return slot


@device
def find_or_insert(keys: I64, slots: I32, size: int, id_: int) -> int:
    """Slot of `id_`; a result equal to `size` means it was new and now has that slot.

    The caller counts: `size += slot == size`. There must be room (`IdMap.reserve`).
    """
    cell = probe(keys, slots, id_)
    slot: int = slots[cell]
    if slot < 0:
        slot = size
        slots[cell] = slot
        keys[slot] = id_
    return slot


@kernel("const i8[::1], const i4[::1], const i8[::1], i4[::1] -> void", group="pserver")
def _find_all(keys: I64, slots: I32, ids: I64, out: I32) -> None:
    for i in range(len(ids)):
        out[i] = find(keys, slots, ids[i])


@kernel("i8[::1], i4[::1], i8, const i8[::1], i4[::1] -> i8", group="pserver trainer")
def insert_all(keys: I64, slots: I32, size: int, ids: I64, out: I32) -> int:
    """`out` (n,) = slots of `ids` (n,), inserting new ones; returns the new size."""
    for i in range(len(ids)):
        slot = find_or_insert(keys, slots, size, ids[i])
        size += slot == size
        out[i] = slot
    return size


@kernel("const i8[::1], i8, i4[::1] -> void", group="pserver table")
def _rehash(keys: I64, size: int, slots: I32) -> None:
    slots[:] = -1
    for slot in range(size):
        slots[probe(keys, slots, keys[slot])] = slot


class IdMap:
    """The arrays of one map: `keys` (limit,) int64, `slots` (cells,) int32, `size` ids.

    `size <= limit == cells * 3 / 4`, so every probe ends at an empty cell. Fused kernels take the
    three, after `reserve`, and hand back the new size. `reserve` may replace both arrays.
    """

    def __init__(self, capacity: int = 0) -> None:
        self.size = 0
        cells = cells_for(capacity)
        self.keys: I64 = np.empty(cells * 3 // 4, np.int64)
        self.slots: I32 = np.full(cells, -1, np.int32)

    def __len__(self) -> int:
        return self.size

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self.slots.nbytes

    def reserve(self, extra: int) -> None:
        """Make room for `extra` new ids."""
        if self.size + extra <= len(self.keys):
            return
        cells = cells_for(self.size + extra)
        keys = np.empty(cells * 3 // 4, np.int64)
        keys[: self.size] = self.keys[: self.size]
        self.keys, self.slots = keys, np.empty(cells, np.int32)
        _rehash(self.keys, self.size, self.slots)

    def find(self, ids: I64) -> I32:
        """Slots of `ids` (n,), −1 where unknown."""
        out = np.empty(len(ids), np.int32)
        _find_all(self.keys, self.slots, ids, out)
        return out

    def insert(self, ids: I64) -> I32:
        """Slots of `ids` (n,); unknown ones get the next free slots in order."""
        self.reserve(len(ids))
        out = np.empty(len(ids), np.int32)
        self.size = insert_all(self.keys, self.slots, self.size, ids, out)
        return out


def cells_for(size: int) -> int:
    """The least power of two that holds `size` ids at a load of at most 3/4."""
    return max(_SMALLEST, 1 << (size * 4 // 3).bit_length())
