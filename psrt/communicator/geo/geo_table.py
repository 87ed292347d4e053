"""A trainer's own table of a Geo job, and its changes since the last agreement.

After weights and optimizer state each row holds `old`, the weights last agreed on, so that an
exchange reads one stretch of memory per row. A row that does not exist has its initial value in
both. Rows touched by updates since the last exchange are listed once each. Formulas and their
source: `psrt.kernels.tables.agreement`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from psrt.communicator.geo.local_table import LocalTable
from psrt.core.specs import SparseTableSpec
from psrt.core.tensors import SelectedRows
from psrt.core.types import F32, I32, I64, U8, Array
from psrt.kernels.tables import ID_WORD, RowLayout, RowStore, RowUpdate, agreement, no_hints
from psrt.kernels.tables import rows as row_kernels


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
    """`give` returns local changes, `take` applies those of others; for the training thread."""

    def __init__(self, spec: SparseTableSpec) -> None:
        super().__init__(spec, _AgreedRows, extra_vectors=1)
        self._at = self._rows.layout.weights_at
        self._old_at = self._at + spec.width + len(self._rule.first_state(spec.width))
        self._touched_slots: I32 = np.empty(0, np.int32)
        self._is_touched: U8 = np.zeros(0, np.uint8)
        self._count = 0

    def give(self, trainers: int, all_rows: bool = False) -> SelectedRows:
        """1/`trainers` of the local change of each row, which counts as agreed on from now on.

        Covers the rows touched since the last call, or `all_rows`; unchanged rows are left out.
        """
        slots = self._touched() if not all_rows else np.arange(len(self), dtype=np.int32)
        ids = np.empty(len(slots), np.int64)
        deltas = np.empty((len(slots), self.spec.width), np.float32)
        changed = agreement.give_rows_(
            *(self._rows.slab.rows, self._at, self._old_at, slots), *(trainers, ids, deltas)
        )
        self._is_touched[slots] = 0
        self._count = 0
        return SelectedRows(ids[:changed], deltas[:changed], 0, unique=True)

    def take(self, ids: I64, agreed: F32) -> None:
        """Apply `agreed` (n, width), the pservers' rows of distinct `ids` (n,).

        Local changes since the last `give` are kept on top.
        """
        order = self._trained(ids)
        found = no_hints(len(order))
        self._rows.touch(ids, order, found)
        self._extend_lists()
        rows = agreed if len(order) == len(ids) else agreed[order]
        agreement.take_rows_(self._rows.slab.rows, self._at, self._old_at, found, rows)

    # --- cuts ---

    @property
    def layout(self) -> RowLayout:
        """The places of words in a row."""
        return self._rows.layout

    def kept(self, page_bytes: int) -> Iterator[dict[str, Array]]:
        """Copies of the rows that a cut needs: those updated here, or with a residual.

        `rows` (n, words) as the slab has them; `touched` (n,) uint8 is 1 for a row that the next
        `give` covers.
        """
        step = max(1, page_bytes // self.layout.row_bytes)
        for first in range(0, len(self), step):
            page = self._kept(first, min(first + step, len(self)))
            if len(page["rows"]):
                yield page

    def put_kept(self, rows: F32, touched: U8) -> None:
        """Insert or replace rows as `kept` has returned them."""
        ids = _ids_of(rows)
        order, found = np.arange(len(ids), dtype=np.int32), no_hints(len(ids))
        self._rows.put(ids, order, found, rows)
        self._extend_lists()
        self._note(found[touched != 0])

    def add_residuals(self, rows: F32) -> None:
        """Add the residuals of another trainer's `rows`, which the next `give` covers."""
        columns = np.arange(self._at, self._at + self.spec.width)
        residuals = rows[:, columns] - rows[:, columns - self._at + self._old_at]
        changed = residuals.any(axis=1)
        ids, residuals = _ids_of(rows[changed]), residuals[changed]
        order, found = np.arange(len(ids), dtype=np.int32), no_hints(len(ids))
        self._rows.touch(ids, order, found)
        self._extend_lists()
        self._rows.slab.rows[found[:, None], columns] += residuals
        self._note(found)

    def _kept(self, first: int, end: int) -> dict[str, Array]:
        slots = np.empty(end - first, np.int32)
        where = self._at, self._old_at, self.spec.width
        slots = slots[: agreement.trained_(self._rows.slab.rows, *where, first, slots)]
        rows = np.empty((len(slots), self.layout.words), np.float32)
        row_kernels.gather(self._rows.slab.rows, slots, rows)
        return {"rows": rows, "touched": self._is_touched[slots]}

    def _note(self, found: I32) -> None:
        """Let the next `give` cover the rows at slots `found` (n,)."""
        self._count = agreement.note_(found, self._is_touched, self._touched_slots, self._count)

    # --- inside ---

    def _apply(self, update: RowUpdate, order: I32, found: I32) -> None:
        super()._apply(update, order, found)
        self._extend_lists()
        self._note(found)

    def _touched(self) -> I32:
        """Slots of rows that may have changed since the last `give`."""
        if self._rule.moves_all_rows:
            return np.arange(len(self), dtype=np.int32)
        return self._touched_slots[: self._count]

    def _extend_lists(self) -> None:
        capacity = len(self._rows.slab.rows)
        if capacity > len(self._is_touched):
            self._is_touched = _extended(self._is_touched, capacity)
            self._touched_slots = _extended(
                self._touched_slots, capacity + 1
            )  # note_ writes one past the last


def _ids_of(rows: F32) -> I64:
    ids: I64 = np.ascontiguousarray(rows).view(np.int64)[:, ID_WORD // 2].copy()
    return ids


def _extended(array: Array, size: int) -> Array:
    longer = np.zeros(size, array.dtype)
    longer[: len(array)] = array
    return longer
