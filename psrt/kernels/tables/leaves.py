"""The index of a table's rows by id, cell by cell: extendible hashing over small tables.

A *leaf* is an open-addressing table of CELLS cells with linear probing (Knuth, TAOCP 3, algorithm
6.4 L); a *directory* of 2^depth leaf numbers maps an id to its leaf (Fagin, Nievergelt,
Pippenger & Strong 1979). A full leaf is split in two by one more bit of the hash, and two that have
become empty are merged: no growth ever touches more than one leaf, whatever the size of the
table. Leaves are full at different loads, or all would split within the same batches.

    hash of an id:  63 … 54         36 … 32   31 … 12     11 … 0
                    virtual shard   tag       directory   cell

A cell holds the slot of a row in the slab and 5 bits of the id's hash, the tag, which spares reads
of the rows of other ids; the ids themselves are in the rows. Slots are below SLOTS. The lower
halves of the hashes are in a separate array by slot: a split of a leaf reads thousands at random,
and a page has those of 1,024 rows, but the ids of some 80 (12.5 million rows of 8 weights: 90
instead of 330 µs a split). Rows come in the order of their slots, so that their writes cost
nothing.

Device functions and kernels over plain arrays; `IdIndex` owns them. `cells` (leaves · CELLS,),
`facts` (leaves, FACTS), `hashes` (m,), `rows` (m, words) is the slab. Nothing here locks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.core.types import F32, I32, I64, U8, U32
from psrt.kernels.jit import device, kernel
from psrt.kernels.lowlevel import AHEAD, mix64, prefetch
from psrt.kernels.tables.row_layout import ID_WORD

CELL_BITS = 12
CELLS = 1 << CELL_BITS
MOST_DEPTH = 32 - CELL_BITS
SLOT_BITS = 27
SLOTS = (1 << SLOT_BITS) - 1
"""A stripe has less rows than this."""
HASH_BYTES = 4

EMPTY = np.uint32(0xFFFFFFFF)
COUNT, LIMIT, DEPTH, PREFIX = 0, 1, 2, 3
FACTS = 4
"""Of a leaf: ids in it, ids at which it is full, number of its directory bits, and those bits."""

_LEAST_LOAD, _LOADS = 0.5, 0.38
_MARGIN = 0.93
"""A leaf of evenly spread ids has less than this part of its limit, or it is likely to be split."""
_SLOT_MASK = np.uint32(SLOTS)
_ID = ID_WORD // 2  # of a row in words of 8 bytes


def limit_of(prefix: int, depth: int) -> int:
    """Ids at which a leaf is full: 0.5 to 0.88 of its cells, by 1/φ steps, which spread any run of
    neighbours evenly."""
    share = ((prefix + (1 << depth)) * 0.6180339887498949) % 1.0
    return int(CELLS * (_LEAST_LOAD + _LOADS * share))


def leaves_of(ids: int) -> list[tuple[int, int]]:
    """The leaves of an index of `ids` ids whose hashes are spread evenly: prefix and depth of
    each."""
    found, open_ = [], [(0, 0)]
    while open_:
        prefix, depth = open_.pop()
        if depth < MOST_DEPTH and ids / (1 << depth) > _MARGIN * limit_of(prefix, depth):
            open_ += [(prefix | 1 << depth, depth + 1), (prefix, depth + 1)]
        else:
            found.append((prefix, depth))
    return found


@device
def place_of(directory: I32, hashed: Any) -> Any:
    """The cell where the probe for a hash begins."""
    entry = (hashed >> np.uint64(CELL_BITS)) & np.uint64(len(directory) - 1)
    cell = np.int64(hashed & np.uint64(CELLS - 1))
    return (np.int64(directory[np.int64(entry)]) << CELL_BITS) | cell


@device
def tag_of(hashed: Any) -> Any:
    return np.uint32((hashed >> np.uint64(32)) << np.uint64(SLOT_BITS))


@device
def next_cell(cell: Any) -> Any:
    """The cell behind this one in its leaf, which is a ring."""
    return np.int64(cell - (cell & (CELLS - 1)) + ((cell + 1) & (CELLS - 1)))


@device
def first_match(cells: U32, place: Any, tag: Any) -> Any:
    """The first cell from `place` on with `tag` or empty: most likely the result of `probe`."""
    cell = np.int64(place)
    while cells[cell] != EMPTY and np.uint32(cells[cell] ^ tag) > _SLOT_MASK:
        cell = next_cell(cell)
    return cell


@device
def probe(cells: U32, keys: I64, match: Any, id_: int) -> Any:
    """The cell that holds `id_`, or else the empty cell where it belongs; `keys` is the slab in
    words of 8 bytes. `match` is from `first_match`; cells may have been filled since."""
    cell = np.int64(match)
    while cells[cell] != EMPTY and keys[slot_of(cells[cell]), _ID] != id_:
        cell = first_match(cells, next_cell(cell), tag_of(mix64(np.uint64(id_))))
    return cell


@device
def slot_of(content: Any) -> Any:
    """The slot in a cell, −1 in an empty one."""
    return np.int64(content & _SLOT_MASK) if content != EMPTY else np.int64(-1)


@device
def cell_of_slot(directory: I32, cells: U32, hashes: U32, slot: int) -> Any:
    """The cell that holds an existing slot."""
    cell = place_of(directory, np.uint64(hashes[slot]))
    while slot_of(cells[cell]) != slot:
        cell = next_cell(cell)
    return cell


@device
def put(cells: U32, place: Any, content: Any) -> None:
    """Add content to a leaf that does not have it yet."""
    cell = np.int64(place)
    while cells[cell] != EMPTY:
        cell = next_cell(cell)
    cells[cell] = content


@device
def take_out(cells: U32, hashes: U32, cell: Any) -> None:
    """Empty a cell, and move up the cells behind it (TAOCP 3, algorithm 6.4 R)."""
    hole = np.int64(cell)
    cells[hole] = EMPTY
    behind = next_cell(hole)
    while cells[behind] != EMPTY:
        home = np.int64(hashes[slot_of(cells[behind])]) & (CELLS - 1)
        if ((behind - home) & (CELLS - 1)) >= ((behind - hole) & (CELLS - 1)):
            cells[hole] = cells[behind]
            cells[behind] = EMPTY
            hole = behind
        behind = next_cell(behind)


@device
def pack_(contents: U32) -> int:
    """Move filled cells to the front, and return their number. Without a branch: empty cells are at
    random places, so each would be mispredicted."""
    count = 0
    for number in range(len(contents)):
        contents[count] = contents[number]
        count += contents[number] != EMPTY
    return count


@device
def move_in(
    cells: U32, facts: I32, hashes: U32, contents: U32, bit: int, stays: int, goes: int
) -> None:
    """Put `contents` (CELLS,) into leaf `goes` where hashes have `bit`, else into leaf `stays`;
    they are packed in place."""
    count = pack_(contents)
    for number in range(count):
        if number + AHEAD < count:
            prefetch(hashes, slot_of(contents[number + AHEAD]), 0)
        hashed = np.int64(hashes[slot_of(contents[number])])
        leaf = goes if (hashed >> CELL_BITS) & bit else stays
        put(cells, (leaf << CELL_BITS) | (hashed & (CELLS - 1)), contents[number])
        facts[leaf, COUNT] += 1


@kernel("u4[::1], i4[:, ::1], const u4[::1], u4[::1], i8, i8 -> void", group="pserver table")
def split_(cells: U32, facts: I32, hashes: U32, scratch: U32, leaf: int, new: int) -> None:
    """Move half of a leaf into leaf `new`, whose facts are written except the count."""
    first, fresh = leaf << CELL_BITS, new << CELL_BITS
    for number in range(CELLS):
        scratch[number] = cells[first + number]
        cells[first + number] = EMPTY
        cells[fresh + number] = EMPTY
    facts[leaf, COUNT] = facts[new, COUNT] = 0
    move_in(cells, facts, hashes, scratch, 1 << (facts[new, DEPTH] - 1), leaf, new)


@kernel("u4[::1], i4[:, ::1], const u4[::1], i8, i8 -> void", group="pserver table")
def merge_(cells: U32, facts: I32, hashes: U32, leaf: int, other: int) -> None:
    """Move all of leaf `other` into `leaf`."""
    contents = cells[other << CELL_BITS : (other + 1) << CELL_BITS]
    move_in(cells, facts, hashes, contents, 0, leaf, leaf)
    facts[other, COUNT] = 0


@kernel(
    "const i4[::1], u4[::1], i4[:, ::1], u4[::1], f4[:, ::1], i8, i8, const u1[::1] -> i8",
    group="pserver table",
)
def drop_(
    directory: I32,
    cells: U32,
    facts: I32,
    hashes: U32,
    rows: F32,
    size: int,
    first: int,
    dropped: U8,
) -> int:
    """Drop rows `first + i` with `dropped[i]` of `size` rows; returns how many are left.

    The last row moves into each hole. In descending order that row stays: it is behind this page,
    or was passed already.
    """
    for i in range(len(dropped) - 1, -1, -1):
        if not dropped[i]:
            continue
        slot, last = first + i, size - 1
        cell = cell_of_slot(directory, cells, hashes, slot)
        take_out(cells, hashes, cell)
        facts[cell >> CELL_BITS, COUNT] -= 1
        if slot != last:
            cell = cell_of_slot(directory, cells, hashes, last)
            hashes[slot] = hashes[last]
            cells[cell] = (cells[cell] & ~_SLOT_MASK) | np.uint32(slot)
            for word in range(rows.shape[1]):
                rows[slot, word] = rows[last, word]
        size = last
    return size
