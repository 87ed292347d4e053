"""Rows by id in memory: an index and a slab, kept in step.

One thread at a time; the caller owns the lock. Rows fill slots 0 … rows − 1 without holes, so the
last row moves into the place of a dropped one; callers that rely on slots drop nothing meanwhile.
Reading never creates a row: an absent row reads as its initial value.

No method binds `slab.rows` to a name that outlives it: a mapping with views cannot grow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from psrt.core.errors import ErrorCode, TableError
from psrt.core.types import F32, I32, I64, U8
from psrt.kernels.optimizers import UPDATES_WORD, RowTable
from psrt.kernels.tables import leaves, routing, row_access, row_eviction, row_lookup
from psrt.kernels.tables import rows as row_kernels
from psrt.kernels.tables.growable_memory import Slab
from psrt.kernels.tables.id_index import IdIndex
from psrt.kernels.tables.row_layout import ID_WORD, RowLayout

Start: TypeAlias = tuple[int, float, float, int]
"""Initializer kind, its two numbers, and the seed: the values of an untouched row."""
Move: TypeAlias = Callable[[RowTable, I32, I32], None]
"""Moves the float32 rows at slots (n,) of a table by the gradients at positions (n,) of a batch."""
MoveAll: TypeAlias = Callable[[RowTable, int], None]
"""Moves the first n rows of a table."""

VERSION_MASK = 0x7FFFFFFF
_MERGES = 32  # of leaves in one call of `drop`: some milliseconds


class RowStore:
    """Rows of `layout`; a new one begins with `start` and `first_state` (state words,).

    An absent row reads as `absent`, or else as it would begin.
    """

    def __init__(
        self, layout: RowLayout, start: Start, first_state: F32, absent: Start | None = None
    ) -> None:
        self.layout = layout
        self.slab = Slab(layout.words)
        self._index = IdIndex()
        self._start = start
        self._absent = start if absent is None else absent
        self._first_state = first_state
        self._size: I64 = np.zeros(1, np.int64)
        self._room = 0  # rows that were reserved, and not given back since

    @property
    def rows(self) -> int:
        return int(self._size[0])

    @property
    def nbytes(self) -> int:
        """Memory of the rows; the untouched rest of the mapping is not resident."""
        row_bytes = self.layout.row_bytes + leaves.HASH_BYTES
        return self.rows * row_bytes + self._index.nbytes

    @property
    def cells(self) -> int:
        """Cells of the index, `rows` of them filled."""
        return self._index.cells

    @property
    def short_slabs(self) -> list[Slab]:
        """Slabs to prepare before more rows come: see `Slab.prepare`."""
        return [each for each in (self.slab, *self._index.slabs) if each.is_short]

    # --- finding ---

    def read(self, ids: I64, order: I32, found: I32, out: F32) -> None:
        """`out[i]` (n, width) = weights of rows `ids[i]`, i in `order`, and `found` (n,) their
        slots, as of `find`."""
        directory, cells, _, _ = self._index.arrays
        read = row_access.read_few_rows if len(order) <= row_access.FEW else row_access.read_rows
        read(
            *(directory, cells, self.slab.rows, self.rows, self.layout.weights_at),
            *(ids, order, found, *self._absent, out),
        )

    def find(self, ids: I64, order: I32, found: I32) -> None:
        """`found` (n,) = slots of rows `ids[order]`, −1 where there is none.

        It comes with hints, slots of an earlier lookup, or with UNKNOWN.
        """
        directory, cells, _, _ = self._index.arrays
        where = directory, cells, self.slab.rows, self.rows
        row_lookup.find(*where, ids, order, found, self.layout.state_at)

    def touch(self, ids: I64, order: I32, found: I32, version: int = -1, hour: int = 0) -> None:
        """`found` (n,) = slots of rows `ids[order]`, created where there are none; as of `find`.

        They count one more update, the `version`-th of the table, made in this hour since 1970;
        none with version −1. A row that appears twice counts both before the first is made: Adam's
        bias correction is that of the second for both. Raises `TableError` if there is no room for
        all: rows that were created before keep initial values, and none counts an update.
        """
        first, end = self.rows, 0
        if first + len(order) > self._room:
            self._reserve(first + len(order))
        stamp = (version & VERSION_MASK if version >= 0 else -1, self.layout.seen_at, hour)
        try:
            while (end := self._touch(ids, order, found, end, stamp)) < len(order):
                self._index.grow(~int(found[end]) >> leaves.CELL_BITS)
        except BaseException:
            self._take_back(found[:end], stamp)
            raise
        finally:
            if self.rows > first:
                self._begin(first, self.rows)

    def put(self, ids: I64, order: I32, found: I32, rows: F32) -> None:
        """Rows `ids[order]`, created where there are none, become `rows` (n, words), as the slab
        has them; `found` as of `touch`, and errors."""
        first, end = self.rows, 0
        self._reserve(first + len(order))
        self.slab.make(first + len(order))
        try:
            while (end := self._touch(ids, order, found, end, (-1, -1, 0))) < len(order):
                self._index.grow(~int(found[end]) >> leaves.CELL_BITS)
        except BaseException:
            self._begin(first, self.rows)
            raise
        row_kernels.scatter(self.slab.rows, found, rows)

    def expect(self, rows: int) -> None:
        """Prepare an empty store for about so many rows, which `put` brings: the index does not
        split its leaves one by one."""
        if not self.rows:
            self._index.expect(rows)

    def count(self, found: I32, order: I32, counts: F32) -> None:
        """Add up shows and clicks (n, 2) in rows that keep them: see `row_eviction.count_`."""
        if self.layout.show_at >= 0:
            places = self.layout.show_at, self.layout.click_at
            row_eviction.count_(self.slab.rows, found, order, counts, *places)

    # --- moving ---

    def move(self, move: Move, found: I32, order: I32) -> None:
        """`move` the rows at slots `found` (n,)."""
        move(self._table(), found, order)

    def move_all(self, move: MoveAll) -> None:
        """`move` all rows."""
        move(self._table(), self.rows)

    # --- all rows ---

    def ids(self, first: int = 0, end: int | None = None) -> I64:
        """A copy of the ids of rows `first` to `end`."""
        keys: I64 = self.slab.rows[first : self.rows if end is None else end].view(np.int64)
        return keys[:, ID_WORD // 2].copy()

    def page(self, first: int, end: int) -> tuple[I64, F32]:
        """Copies of ids (n,) and weights (n, width) of rows `first` to `end`."""
        at = self.layout.weights_at
        return self.ids(first, end), self.slab.rows[first:end, at : at + self.layout.width].copy()

    def drop(self, first: int, dropped: U8) -> None:
        """Drop rows `first + i` with `dropped[i]`, and give memory back bit by bit."""
        self._size[0] = leaves.drop_(*self._index.arrays, self.slab.rows, self.rows, first, dropped)
        self._index.shrink(self.rows, _MERGES)
        self.slab.trim(self.rows)
        self._room = 0

    def slots_of(self, ids: I64) -> I32:
        """The slots of those of these rows that exist."""
        order, found = np.arange(len(ids), dtype=np.int32), no_hints(len(ids))
        self.find(ids, order, found)
        return found[found >= 0]

    def drop_slots(self, slots: I32) -> None:
        """Drop the rows at `slots` (n,)."""
        if len(slots):
            first = int(slots.min())
            dropped = np.zeros(int(slots.max()) + 1 - first, np.uint8)
            dropped[slots - first] = 1
            self.drop(first, dropped)

    # --- inside ---

    def _touch(
        self, ids: I64, order: I32, found: I32, begin: int, stamp: tuple[int, int, int]
    ) -> int:
        end: int = row_access.touch_(
            *(*self._index.arrays, self._size, self.slab.rows, self.layout.weights_at),
            *(ids, order, found, begin, *stamp),
        )
        return end

    def _take_back(self, found: I32, stamp: tuple[int, int, int]) -> None:
        """Uncount the update of the rows at slots `found` (n,)."""
        if stamp[0] >= 0:
            np.subtract.at(self.slab.rows.view(np.int32)[:, UPDATES_WORD], found, 1)

    def _begin(self, first: int, end: int) -> None:
        width = 0 if self.layout.is_half else self.layout.width
        row_access.begin_rows_(
            *(self.slab.rows, first, end, self.layout.weights_at, width),
            *(self.layout.state_at, self._first_state, *self._start),
        )

    def _table(self) -> RowTable:
        rows = self.slab.rows
        return RowTable(rows, self.layout.weights_at, rows, self.layout.state_at)

    def _reserve(self, rows: int) -> None:
        if rows > leaves.SLOTS:
            raise _full()
        self.slab.reserve(rows)
        self._index.reserve(rows)
        self._room = rows


def no_hints(count: int) -> I32:
    """Slots (count,) without hints."""
    return np.full(count, routing.UNKNOWN, np.int32)


def _full() -> TableError:
    return TableError(
        f"a stripe holds {leaves.SLOTS:,} rows at most.",
        code=ErrorCode.TABLE_FULL,
        hint="Give the pserver more stripes, or spread the table over more pservers.",
    )
