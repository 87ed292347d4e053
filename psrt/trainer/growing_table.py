"""A distributed table in the memory of the one trainer that trains without pservers.

Any int64 is an id; a row exists once it was updated, and reads before that as its initial value.
The passes over ids and rows and the update rules are those of pservers (`psrt.kernels.slab` and
`rules`), so that the numbers are theirs too. One thread at a time; an evaluation may read while
nothing trains.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from psrt.core.errors import InternalError
from psrt.core.rates import rate_at
from psrt.core.types import F32, I32, I64
from psrt.graph.program import Parameter
from psrt.kernels import slab
from psrt.kernels.idmap import IdMap
from psrt.kernels.initialize import encode
from psrt.kernels.optimizer_rows import HEADER_WORDS
from psrt.kernels.rules import RowTable, TouchedRows, rule_of

_FIRST_ROWS = 1024
_VERSION_MASK = 0x7FFFFFFF


class GrowingTable:
    """Rows of one trained parameter by id; the slab holds header, weights and state of each."""

    def __init__(self, parameter: Parameter) -> None:
        if parameter.optimizer is None or parameter.learning_rate is None:
            raise InternalError(f"Table {parameter.name} is not trained.")
        self._rate, self._padding_id = parameter.learning_rate, parameter.padding_id
        self._width = parameter.shape[1]
        self._rule = rule_of(parameter.optimizer)
        self._start = (*encode(parameter.initializer), parameter.seed)
        self._first: F32 = np.array(self._rule.first, np.float32)
        words = HEADER_WORDS + self._width * (1 + self._rule.state_vectors)
        self._ids = IdMap()
        self._slab: F32 = np.empty((_FIRST_ROWS, words), np.float32)
        self._updates = 0

    def read(self, ids: I64) -> F32:
        """Rows (n, width) of distinct `ids` (n,); zeros for the padding id."""
        out = np.empty((len(ids), self._width), np.float32)
        order, found = np.arange(len(ids), dtype=np.int32), np.empty(len(ids), np.int32)
        known = self._ids
        slab.read_rows(known.keys, known.slots, self._slab, ids, order, found, *self._start, out)
        if self._padding_id is not None:
            out[ids == self._padding_id] = 0
        return out

    def apply(self, ids: I64, gradients: F32) -> None:
        """One update by `gradients` (n, width) of distinct `ids`; the padding id stays as it is."""
        rate = rate_at(self._rate, self._updates)
        self._updates += 1
        order: I32 = np.flatnonzero(ids != self._padding_id).astype(np.int32)
        found, version = np.empty(len(order), np.int32), self._updates & _VERSION_MASK
        self._reserve(len(order))
        known = self._ids
        known.size = slab.touch_(
            *(known.keys, known.slots, known.size, self._slab),
            *(ids, order, found, version, self._width, *self._start, self._first),
        )
        rows = RowTable(self._slab, HEADER_WORDS, self._slab, HEADER_WORDS + self._width)
        self._rule.update_rows(rows, TouchedRows(found, order, gradients), rate, self._updates)
        if self._rule.moves_all_rows:
            self._rule.update_rest(rows, len(known), version, self._width, rate, self._updates)

    def pages(self, page_rows: int) -> Iterator[tuple[I64, F32]]:
        """All rows: ids (n,) and weights (n, width) of at most `page_rows` at a time."""
        for start in range(0, len(self._ids), page_rows):
            stop = min(start + page_rows, len(self._ids))
            weights = self._slab[start:stop, HEADER_WORDS : HEADER_WORDS + self._width]
            yield self._ids.keys[start:stop], weights

    def _reserve(self, extra: int) -> None:
        self._ids.reserve(extra)
        needed = len(self._ids) + extra
        if needed > len(self._slab):
            more = max(needed, 2 * len(self._slab)) - len(self._slab)
            room = np.empty((more, self._slab.shape[1]), np.float32)
            self._slab = np.concatenate([self._slab, room])
