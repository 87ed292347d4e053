"""The rows of some virtual shards of one table: id map, slab, lock.

A slab lies in an anonymous private mapping. Growing one moves page tables instead of rows
(mremap), so there is no moment with two copies, and pages that no row has reached cost nothing.
"""

from __future__ import annotations

import contextlib
import mmap
import threading
from dataclasses import dataclass

import numpy as np

from psrt.core.types import F32, I32, I64
from psrt.kernels import slab as kernels
from psrt.kernels.idmap import IdMap
from psrt.kernels.optimizer_rows import HEADER_WORDS
from psrt.kernels.rules import RowTable, Rule, TouchedRows

Start = tuple[int, float, float, int]
"""Initializer kind, its two numbers, seed: what an untouched row is made of."""

_VERSION_MASK = 0x7FFFFFFF
_FIRST_BYTES = 64 << 10
_HUGE_PAGES_FROM_BYTES = 4 << 20


class Slab:
    """Growing rows of `words` float32 each; `rows` (capacity, words) is not initialised."""

    def __init__(self, words: int) -> None:
        self._words = words
        self._memory = _mapping(max(_FIRST_BYTES, words * 4))
        self.rows: F32 = self._view()

    def reserve(self, rows: int) -> None:
        """Room for `rows` rows; whoever kept `self.rows` from before must let go of it first."""
        if rows <= len(self.rows):
            return
        size_bytes = max(rows, 2 * len(self.rows)) * self._words * 4
        del self.rows  # a mapping with views does not move
        try:
            self._memory = _grown(self._memory, size_bytes)
        finally:
            self.rows = self._view()

    def _view(self) -> F32:
        capacity = len(self._memory) // (self._words * 4)
        flat = np.frombuffer(self._memory, np.float32, capacity * self._words)
        return flat.reshape(capacity, self._words)


@dataclass(frozen=True)
class RowUpdate:
    """One batch on its way into all stripes it touches, the `version`-th of the table.

    Row `ids[i]` moves by `gradients[i]`; `first` (state_vectors,) and `start` begin a new row.
    """

    rule: Rule
    start: Start
    first: F32
    ids: I64
    gradients: F32
    version: int
    rate: float


class Stripe:
    """`rows` rows exist.

    Everything below is guarded by one lock. No method binds `slab.rows` to a name: a view that
    outlives the lock would keep another thread from growing the slab.
    """

    def __init__(self, words: int) -> None:
        self._lock = threading.Lock()
        self._ids = IdMap()
        self._slab = Slab(words)
        self._row_bytes = words * 4

    @property
    def rows(self) -> int:
        return len(self._ids)

    @property
    def nbytes(self) -> int:
        """Memory that holds rows; the untouched rest of the mapping is not resident."""
        used = self.rows * (self._row_bytes + self._ids.keys.itemsize)
        return used + self._ids.slots.nbytes

    def read(self, ids: I64, order: I32, found: I32, start: Start, out: F32) -> None:
        """See `psrt.kernels.slab.read_rows`."""
        with self._lock:
            known = self._ids
            kernels.read_rows(
                known.keys, known.slots, self._slab.rows, ids, order, found, *start, out
            )

    def apply(self, update: RowUpdate, order: I32, found: I32) -> None:
        """Update the rows at positions `order` of the batch; `found` is scratch for their slots."""
        with self._lock:
            self._reserve(len(order))
            known, width = self._ids, update.gradients.shape[1]
            known.size = kernels.touch_(
                *(known.keys, known.slots, known.size, self._slab.rows),
                *(update.ids, order, found, update.version & _VERSION_MASK, width),
                *(*update.start, update.first),
            )
            touched = TouchedRows(found, order, update.gradients)
            update.rule.update_rows(self._table(width), touched, update.rate, update.version)
            if update.rule.moves_all_rows:
                self._update_rest(update, width)

    def page(self, slot: int, max_rows: int, width: int) -> tuple[I64, F32]:
        """Copies of ids and weights of at most `max_rows` rows from `slot` on."""
        with self._lock:
            end = min(slot + max_rows, self.rows)
            ids = self._ids.keys[slot:end].copy()
            return ids, self._slab.rows[slot:end, HEADER_WORDS : HEADER_WORDS + width].copy()

    def _update_rest(self, update: RowUpdate, width: int) -> None:
        update.rule.update_rest(
            *(self._table(width), self.rows, update.version & _VERSION_MASK, width),
            *(update.rate, update.version),
        )

    def _table(self, width: int) -> RowTable:
        slab = self._slab.rows
        return RowTable(slab, HEADER_WORDS, slab, HEADER_WORDS + width)

    def _reserve(self, extra: int) -> None:
        self._ids.reserve(extra)
        self._slab.reserve(self.rows + extra)


def _mapping(size_bytes: int) -> mmap.mmap:
    return mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def _grown(memory: mmap.mmap, size_bytes: int) -> mmap.mmap:
    """The one place where slabs grow."""
    try:
        memory.resize(size_bytes)
    except SystemError:  # no mremap here: copy
        bigger = _mapping(size_bytes)
        bigger[: len(memory)] = memory[:]
        memory.close()
        memory = bigger
    if size_bytes >= _HUGE_PAGES_FROM_BYTES:
        with contextlib.suppress(AttributeError, OSError):  # a hint; not every kernel takes it
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory
