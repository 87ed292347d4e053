"""The rows of some virtual shards of one table: id map, slab, lock."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from psrt.core.types import F32, I32, I64
from psrt.kernels import slab as kernels
from psrt.kernels.decay import Decay
from psrt.kernels.growing import Slab
from psrt.kernels.idmap import IdMap
from psrt.kernels.optimizer_rows import HEADER_WORDS
from psrt.kernels.rules import RowTable, Rule, TouchedRows

Start = tuple[int, float, float, int]
"""Initializer kind, its two numbers, seed: what an untouched row is made of."""

_VERSION_MASK = 0x7FFFFFFF


@dataclass(frozen=True)
class RowUpdate:
    """One batch on its way into all stripes it touches, the `version`-th of the table.

    Row `ids[i]` moves by `gradients[i]`; `first` (state_vectors,) and `start` begin a new row.
    `decayed` (n, width) is where gradients go together with the decay of their rows; without a
    `decay` nobody writes there.
    """

    rule: Rule
    start: Start
    first: F32
    ids: I64
    gradients: F32
    version: int
    rate: float
    decay: Decay | None
    decayed: F32


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
            touched = TouchedRows(found, order, self._decayed(update, order, found))
            update.rule.update_rows(self._table(width), touched, update.rate, update.version)
            if update.rule.moves_all_rows:
                self._update_rest(update, width)

    def ids(self) -> I64:
        """A copy of the ids of all rows."""
        with self._lock:
            return self._ids.keys[: self.rows].copy()

    def page(self, slot: int, max_rows: int, width: int) -> tuple[I64, F32]:
        """Copies of ids and weights of at most `max_rows` rows from `slot` on."""
        with self._lock:
            end = min(slot + max_rows, self.rows)
            ids = self._ids.keys[slot:end].copy()
            return ids, self._slab.rows[slot:end, HEADER_WORDS : HEADER_WORDS + width].copy()

    def _decayed(self, update: RowUpdate, order: I32, found: I32) -> F32:
        """The gradients for the optimizer; an id that stands twice decays twice alike."""
        if update.decay is None:
            return update.gradients
        update.decay.rows(
            *(update.gradients, self._slab.rows, HEADER_WORDS, found, order),
            *(update.decay.coeff, update.decayed),
        )
        return update.decayed

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
