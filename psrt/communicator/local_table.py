"""A sparse table in the memory of the trainer that trains it.

Any int64 is an id; a row exists once it was updated, and reads before that as its initial value.
The passes over ids and rows and the update rules are those of pservers (`psrt.kernels.slab` and
`rules`), so that the numbers are theirs too. Gradients come regularised: whoever trains here does
that to dense and sparse parameters alike. One thread at a time; an evaluation may read while
nothing trains.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from psrt.core.rates import rate_at
from psrt.core.specs import SparseTableSpec
from psrt.core.types import F32, I32, I64
from psrt.kernels import jit, slab
from psrt.kernels.growing import Slab
from psrt.kernels.idmap import IdMap
from psrt.kernels.initialize import encode
from psrt.kernels.optimizer_rows import HEADER_WORDS
from psrt.kernels.rules import RowTable, TouchedRows, rule_of

_VERSION_MASK = 0x7FFFFFFF


class LocalTable:
    """Rows by id; the slab holds header, weights and optimizer state of each.

    A subclass may ask for `vectors_beside` more numbers per weight, behind these. `other_steps` are
    mini-batches of other trainers, by which the learning-rate schedule is further than the updates
    made here.
    """

    def __init__(self, spec: SparseTableSpec, vectors_beside: int = 0) -> None:
        jit.warm_up(["table"])
        self.spec = spec
        self.other_steps = 0
        self._rule = rule_of(spec.optimizer)
        self._start = (*encode(spec.initializer), spec.seed)
        self._first: F32 = np.array(self._rule.first, np.float32)
        vectors = 1 + self._rule.state_vectors + vectors_beside
        self._ids = IdMap()
        self._slab = Slab(HEADER_WORDS + spec.width * vectors)
        self._updates = 0

    def __len__(self) -> int:
        """How many rows exist."""
        return len(self._ids)

    def read(self, ids: I64) -> F32:
        """Rows (n, width) of `ids` (n,); zeros for the padding id."""
        out = np.empty((len(ids), self.spec.width), np.float32)
        order, found = np.arange(len(ids), dtype=np.int32), np.empty(len(ids), np.int32)
        known = self._ids
        slab.read_rows(
            known.keys, known.slots, self._slab.rows, ids, order, found, *self._start, out
        )
        if self.spec.padding_id is not None:
            out[ids == self.spec.padding_id] = 0
        return out

    def apply(self, ids: I64, gradients: F32) -> None:
        """One update by `gradients` (n, width) of distinct `ids`; the padding id stays as it is."""
        rate = rate_at(self.spec.learning_rate, self._updates + self.other_steps)
        self._updates += 1
        version = self._updates & _VERSION_MASK
        order = self._trained(ids)
        found = self._touch(ids, order, version)
        width, rows = self.spec.width, self._slab.rows
        table = RowTable(rows, HEADER_WORDS, rows, HEADER_WORDS + width)
        self._rule.update_rows(table, TouchedRows(found, order, gradients), rate, self._updates)
        if self._rule.moves_all_rows:
            self._rule.update_rest(table, len(self), version, width, rate, self._updates)

    def pages(self, page_rows: int) -> Iterator[tuple[I64, F32]]:
        """All rows: ids (n,) and weights (n, width) of at most `page_rows` at a time, copied."""
        for start in range(0, len(self), page_rows):
            stop = min(start + page_rows, len(self))
            weights = self._slab.rows[start:stop, HEADER_WORDS : HEADER_WORDS + self.spec.width]
            yield self._ids.keys[start:stop].copy(), weights.copy()

    def _trained(self, ids: I64) -> I32:
        """Positions of the ids that are not the padding id."""
        if self.spec.padding_id is None:
            return np.arange(len(ids), dtype=np.int32)
        return np.flatnonzero(ids != self.spec.padding_id).astype(np.int32)

    def _touch(self, ids: I64, order: I32, version: int) -> I32:
        """Make rows `ids[order]` ready for an update; their slots."""
        self._reserve(len(order))
        known, found = self._ids, np.empty(len(order), np.int32)
        known.size = slab.touch_(
            *(known.keys, known.slots, known.size, self._slab.rows),
            *(ids, order, found, version, self.spec.width, *self._start, self._first),
        )
        return found

    def _reserve(self, extra: int) -> None:
        self._ids.reserve(extra)
        self._slab.reserve(len(self) + extra)
