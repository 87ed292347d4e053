"""The index of a table's rows by id: owns directory, leaves and hashes (see `leaves`).

Growing costs a request one leaf at a time, some 100 µs each, whatever the size of the table.
The caller owns the lock, and the slab that holds the ids.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from psrt.core.errors import ErrorCode, TableError
from psrt.core.types import I32, U32
from psrt.kernels.tables import leaves
from psrt.kernels.tables.growable_memory import Slab
from psrt.kernels.tables.leaves import CELLS, COUNT, DEPTH, EMPTY, FACTS, LIMIT, PREFIX

_MERGED_LOAD = 0.4
"""Two leaves are merged when together they fill less than this: well below what splits them."""


class IndexArrays(NamedTuple):
    """Arguments of kernels: see `leaves`."""

    directory: I32
    cells: U32
    facts: I32
    hashes: U32


class IdIndex:
    """From ids to slots of rows; the number of leaves follows the number of ids both ways."""

    def __init__(self) -> None:
        self._cells = Slab(CELLS)
        self._hashes = Slab(1)
        self._arrays: IndexArrays | None = None
        self._directory: I32 = np.zeros(1, np.int32)
        self._facts: I32 = np.zeros((16, FACTS), np.int32)
        self._facts[0, LIMIT] = leaves.limit_of(0, 0)
        self._leaves = 1
        self._cells.reserve(1)
        self.arrays.cells[:CELLS] = EMPTY

    @property
    def arrays(self) -> IndexArrays:
        """Drop references to them before the index grows or shrinks."""
        if self._arrays is None:
            cells = self._cells.rows.reshape(-1).view(np.uint32)
            hashes = self._hashes.rows.reshape(-1).view(np.uint32)
            self._arrays = IndexArrays(self._directory, cells, self._facts, hashes)
        return self._arrays

    @property
    def slabs(self) -> tuple[Slab, ...]:
        """The memory that follows the number of ids."""
        return self._cells, self._hashes

    @property
    def cells(self) -> int:
        """Cells in use or empty."""
        return self._leaves * CELLS

    @property
    def nbytes(self) -> int:
        """Memory except the hashes, HASH_BYTES a row."""
        return self.cells * 4 + self._directory.nbytes + self._facts.nbytes

    def reserve(self, rows: int) -> None:
        """Make room for the hashes of `rows` rows; see `Slab.reserve`."""
        self._arrays = None
        self._hashes.reserve(rows)

    def expect(self, rows: int) -> None:
        """Make the leaves of an empty index that `rows` ids will have split it into."""
        self._arrays = None
        found = leaves.leaves_of(rows)
        count, depth = len(found), max(depth for _, depth in found)
        self._cells.reserve(count)
        self._cells.make(count)
        self._directory = np.zeros(1 << depth, np.int32)
        self._facts = np.zeros((max(16, count), FACTS), np.int32)
        for leaf, (prefix, bits) in enumerate(found):
            self._facts[leaf] = (0, leaves.limit_of(prefix, bits), bits, prefix)
            self._directory[prefix :: 1 << bits] = leaf
        self._leaves = count
        self.arrays.cells[: count * CELLS] = EMPTY

    def grow(self, leaf: int) -> None:
        """Split a leaf that is full.

        Raises `TableError` if it cannot be, and leaves the index as it was: its ids share the lower
        32 bits of their hashes, which does not happen by chance, or there is no memory.
        """
        self._arrays = None
        scratch = np.empty(CELLS, np.uint32)
        depth, prefix = int(self._facts[leaf, DEPTH]), int(self._facts[leaf, PREFIX])
        if depth == leaves.MOST_DEPTH:
            raise _unspread()
        if 1 << depth == len(self._directory):
            self._directory = np.concatenate([self._directory, self._directory])
        new = self._new_leaf()
        for number, bits in ((leaf, prefix), (new, prefix | 1 << depth)):
            self._facts[number] = (0, leaves.limit_of(bits, depth + 1), depth + 1, bits)
        self._directory[prefix | 1 << depth :: 2 << depth] = new
        _, cells, facts, hashes = self.arrays
        leaves.split_(cells, facts, hashes, scratch, leaf, new)

    def shrink(self, rows: int, most: int) -> None:
        """Merge up to `most` pairs of nearly empty leaves after a drop to `rows` rows, and give
        memory back."""
        for prefix, depth in self._mergeable()[:most].tolist():
            self._merge(prefix, depth)
        depth = int(self._facts[: self._leaves, DEPTH].max())
        if 1 << depth < len(self._directory):
            self._directory = self._directory[: 1 << depth].copy()
        self._arrays = None
        self._cells.trim(self._leaves)
        self._hashes.trim(rows)

    def _new_leaf(self) -> int:
        self._cells.reserve(self._leaves + 1)
        if self._leaves == len(self._facts):
            self._facts = np.concatenate([self._facts, np.zeros_like(self._facts)])
        self._leaves += 1
        return self._leaves - 1

    def _mergeable(self) -> I32:
        """Pairs of leaves (n, 2) that one leaf could hold, as that leaf's prefix and depth."""
        facts = self._facts[: self._leaves]
        halves = np.maximum(facts[:, DEPTH] - 1, 0)
        upper = np.flatnonzero((facts[:, DEPTH] > 0) & (facts[:, PREFIX] >> halves == 1))
        depths = halves[upper]
        prefixes = facts[upper, PREFIX] - (1 << depths)
        lower = self._directory[prefixes]
        fits = facts[lower, DEPTH] == facts[upper, DEPTH]
        fits &= facts[upper, COUNT] + facts[lower, COUNT] <= _MERGED_LOAD * CELLS
        return np.column_stack([prefixes[fits], depths[fits]]).astype(np.int32)

    def _merge(self, prefix: int, depth: int) -> None:
        """Merge the two leaves of this prefix."""
        directory, cells, facts, hashes = self.arrays
        leaf, other = int(directory[prefix]), int(directory[prefix | 1 << depth])
        leaves.merge_(cells, facts, hashes, leaf, other)
        facts[leaf, LIMIT:] = (leaves.limit_of(prefix, depth), depth, prefix)
        directory[prefix :: 1 << depth] = leaf
        last = self._leaves = self._leaves - 1
        if other != last:  # no holes: the last leaf moves
            cells[other * CELLS : (other + 1) * CELLS] = cells[last * CELLS : (last + 1) * CELLS]
            facts[other] = facts[last]
            directory[facts[last, PREFIX] :: 1 << facts[last, DEPTH]] = other


def _unspread() -> TableError:
    return TableError(
        "too many ids of one table share the lower half of their hash.",
        code=ErrorCode.TABLE_FULL,
        hint="Ids that were chosen to collide do this; hash them with a key of your own first.",
    )
