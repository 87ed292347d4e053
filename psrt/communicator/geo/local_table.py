"""A sparse table in the memory of the trainer that trains it.

Any int64 is an id; a row exists once it was updated, and reads before that as its initial value.
Rows and optimizer rules are those of pservers (`psrt.kernels.tables`, `psrt.kernels.optimizers`)
and give equal numbers, except that weights are stored in float32 here. Callers regularise
gradients, as they do those of dense parameters. One thread at a time; an evaluation may read while
nothing trains.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from psrt.core.specs import SparseTableSpec, rate_at
from psrt.core.types import F32, I32, I64
from psrt.kernels import jit
from psrt.kernels.optimizers import decay_of, rule_of
from psrt.kernels.tables import ID_WORD, RowStore, RowUpdate, encode, no_hints, row_layout


class LocalTable:
    """Rows by id.

    A subclass may pass its own `kind` of rows, with `extra_vectors` more numbers per weight after
    their state. With `decays` the table regularises gradients by its spec, as a pserver does.
    `updates` counts those made here. `other_steps` counts mini-batches of other trainers, which
    advance the learning-rate schedule beyond these. A `rate` that is set replaces the schedule.
    """

    rate: float | None = None

    def __init__(
        self,
        spec: SparseTableSpec,
        kind: type[RowStore] = RowStore,
        extra_vectors: int = 0,
        decays: bool = False,
    ) -> None:
        jit.warm_up(["table"])
        self.spec = spec
        self.other_steps = 0
        self._rule = rule_of(spec.optimizer)
        self._decay = decay_of(spec.regularizer) if decays else None
        first_state = np.concatenate(
            [self._rule.first_state(spec.width), np.zeros(spec.width * extra_vectors, np.float32)]
        )
        start = (*encode(spec.initializer), spec.seed)
        self._rows = kind(row_layout(spec.width, len(first_state)), start, first_state)
        self.updates = 0

    def __len__(self) -> int:
        """Number of existing rows."""
        return self._rows.rows

    def read(self, ids: I64) -> F32:
        """Rows (n, width) of `ids` (n,); the padding id reads as zeros."""
        out = np.empty((len(ids), self.spec.width), np.float32)
        order, found = np.arange(len(ids), dtype=np.int32), no_hints(len(ids))
        self._rows.read(ids, order, found, out)
        if self.spec.padding_id is not None:
            out[ids == self.spec.padding_id] = 0
        return out

    def apply(self, ids: I64, gradients: F32) -> None:
        """One update by `gradients` (n, width) of distinct `ids`; skips the padding id."""
        rate = self.rate
        if rate is None:
            rate = rate_at(self.spec.learning_rate, self.updates + self.other_steps)
        self.updates += 1
        decayed = None if self._decay is None else np.empty_like(gradients)
        update = RowUpdate(self._rule, ids, gradients, self.updates, rate, self._decay, decayed)
        order = self._trained(ids)
        self._apply(update, order, no_hints(len(order)))

    def pages(self, page_rows: int) -> Iterator[tuple[I64, F32]]:
        """All rows: ids (n,) and weights (n, width) of at most `page_rows` at a time, copied."""
        for start in range(0, len(self), page_rows):
            yield self._rows.page(start, min(start + page_rows, len(self)))

    def raw_pages(self, page_rows: int) -> Iterator[F32]:
        """All rows (n, words) with header and optimizer state, not copied, for `put_raw`."""
        for start in range(0, len(self), page_rows):
            yield self._rows.slab.rows[start : min(start + page_rows, len(self))]

    def put_raw(self, rows: F32) -> None:
        """Insert or replace rows of `raw_pages`; raises `ValueError` for those of another form."""
        if rows.shape[1:] != self._rows.slab.rows.shape[1:]:
            raise ValueError(f"rows of {rows.shape[1:]} words")
        ids = np.ascontiguousarray(rows).view(np.int64)[:, ID_WORD // 2].copy()
        order, found = np.arange(len(ids), dtype=np.int32), no_hints(len(ids))
        self._rows.put(ids, order, found, rows)

    def _trained(self, ids: I64) -> I32:
        """Positions of the ids that are not the padding id."""
        if self.spec.padding_id is None:
            return np.arange(len(ids), dtype=np.int32)
        return np.flatnonzero(ids != self.spec.padding_id).astype(np.int32)

    def _apply(self, update: RowUpdate, order: I32, found: I32) -> None:
        update.apply(self._rows, order, found)
        update.apply_to_rest(self._rows)
