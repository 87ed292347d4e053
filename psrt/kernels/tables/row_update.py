"""An update of rows by one batch of gradients, on pservers and on trainers with a table."""

from __future__ import annotations

from dataclasses import dataclass, field

from psrt.core.tracing import traced
from psrt.core.types import F32, I32, I64
from psrt.kernels.optimizers import Decay, OptimizerRule, RowTable, TouchedRows
from psrt.kernels.tables.row_eviction import ONE_SHOW_EACH
from psrt.kernels.tables.row_store import VERSION_MASK, RowStore


@dataclass(frozen=True)
class RowUpdate:
    """The `version`-th update of a table: row `ids[i]` moves by `gradients[i]`.

    With a `decay`, `decayed` (n, width) receives gradients plus the decay of their rows. `hour`,
    since 1970, and `counts` (n, 2), shows and clicks, go into rows that keep them.
    """

    rule: OptimizerRule
    ids: I64
    gradients: F32
    version: int
    rate: float
    decay: Decay | None = None
    decayed: F32 | None = None
    hour: int = 0
    counts: F32 = field(default_factory=lambda: ONE_SHOW_EACH)

    @traced("kernel")
    def apply(self, store: RowStore, order: I32, found: I32) -> None:
        """Update the rows at positions `order` of the batch; `found` (n,) becomes their slots
        (see `RowStore.find`)."""
        store.touch(self.ids, order, found, self.version, self.hour)
        store.count(found, order, self.counts)
        store.move(self._move, found, order)

    def apply_to_rest(self, store: RowStore) -> None:
        """Move the rows that the batch did not touch, if the rule moves all."""
        if self.rule.moves_all_rows:
            store.move_all(self._move_rest)

    def _move(self, table: RowTable, slots: I32, order: I32) -> None:
        touched = TouchedRows(slots, order, self._decayed(table, slots, order))
        self.rule.update_rows(table, touched, self.rate, self.version)

    def _decayed(self, table: RowTable, slots: I32, order: I32) -> F32:
        """The gradients for the optimizer; an id that appears twice decays twice."""
        if self.decay is None or self.decayed is None:
            return self.gradients
        self.decay.rows(
            *(self.gradients, table.weights, table.at, slots, order),
            *(self.decay.coeff, self.decayed),
        )
        return self.decayed

    def _move_rest(self, table: RowTable, size: int) -> None:
        width, version = self.gradients.shape[1], self.version & VERSION_MASK
        self.rule.update_rest(table, size, version, width, self.rate, self.version)
