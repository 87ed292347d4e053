"""A trainer's own table of a Geo job: it knows what it has changed since the last agreement.

Behind weights and optimizer state each row holds `old`, the weights last agreed on, so that an
exchange reads one stretch of memory per row; a row that does not exist stands at its initial value
in both. Rows that the updates since the last exchange have touched are listed once each. Formulas
and their source: `psrt.kernels.tables.agreement`.
"""

from __future__ import annotations

import numpy as np

from psrt.communicator.geo.local_table import LocalTable
from psrt.core.specs import SparseTableSpec
from psrt.core.tensors import SelectedRows
from psrt.core.types import F32, I32, I64, U8, Array
from psrt.kernels.tables import RowStore, RowUpdate, agreement, no_hints


class _AgreedRows(RowStore):
    """The weights last agreed on are the last vector of a row's state; at first, its own."""

    @property
    def old_at(self) -> int:
        return self.layout.state_at + len(self._first_state) - self.layout.width

    def _begin(self, first: int, end: int) -> None:
        super()._begin(first, end)
        rows, at, width = self.slab.rows[first:end], self.layout.weights_at, self.layout.width
        rows[:, self.old_at : self.old_at + width] = rows[:, at : at + width]


class GeoTable(LocalTable):
    """`give` what was changed, `take` what others have; the training thread does both."""

    def __init__(self, spec: SparseTableSpec) -> None:
        super().__init__(spec, _AgreedRows, vectors_beside=1)
        self._at = self._rows.layout.weights_at
        self._old_at = self._at + spec.width + len(self._rule.first_state(spec.width))
        self._noted: I32 = np.empty(0, np.int32)
        self._is_noted: U8 = np.zeros(0, np.uint8)
        self._count = 0

    def give(self, trainers: int, all_rows: bool = False) -> SelectedRows:
        """1/`trainers` of the own change of each row, which is agreed on from now on.

        Of the rows touched since the last call, or of `all_rows`; those that have not changed are
        left out.
        """
        slots = self._touched() if not all_rows else np.arange(len(self), dtype=np.int32)
        ids = np.empty(len(slots), np.int64)
        deltas = np.empty((len(slots), self.spec.width), np.float32)
        changed = agreement.give_rows_(
            *(self._rows.slab.rows, self._at, self._old_at, slots),
            *(trainers, ids, deltas),
        )
        self._is_noted[slots] = 0
        self._count = 0
        return SelectedRows(ids[:changed], deltas[:changed], 0, unique=True)

    def take(self, ids: I64, agreed: F32) -> None:
        """Rows `ids` (n,), distinct, are `agreed` (n, width) on the pservers; own progress since
        the last `give` stays on top of that."""
        order = self._trained(ids)
        found = no_hints(len(order))
        self._rows.touch(ids, order, found)
        self._make_room()
        rows = agreed if len(order) == len(ids) else agreed[order]
        agreement.take_rows_(self._rows.slab.rows, self._at, self._old_at, found, rows)

    def _apply(self, update: RowUpdate, order: I32, found: I32) -> None:
        super()._apply(update, order, found)
        self._make_room()
        self._count = agreement.note_(found, self._is_noted, self._noted, self._count)

    def _touched(self) -> I32:
        """Slots of the rows that may have changed since the last `give`."""
        if self._rule.moves_all_rows:
            return np.arange(len(self), dtype=np.int32)
        return self._noted[: self._count]

    def _make_room(self) -> None:
        capacity = len(self._rows.slab.rows)
        if capacity > len(self._is_noted):
            self._is_noted = _extended(self._is_noted, capacity)
            self._noted = _extended(self._noted, capacity + 1)  # note_ writes behind the last


def _extended(array: Array, size: int) -> Array:
    longer = np.zeros(size, array.dtype)
    longer[: len(array)] = array
    return longer
