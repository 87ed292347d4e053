"""Records of the changes of a stripe: copies for freezes, marks for the next deltas.

The stripe calls it under its lock, before and after each change. A stripe without freezes and
deltas has no recorder.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np

from psrt.core.types import I32, I64, U8
from psrt.kernels.tables import RowStore
from psrt.pserver.frozen.change_marks import ChangeMarks
from psrt.pserver.frozen.frozen_records import FrozenRecords, RecordArray
from psrt.pserver.frozen.frozen_stripe import FrozenStripe
from psrt.pserver.frozen.pages import ids_of


class WaitingIds(Protocol):
    """Buckets of ids that wait for admission."""

    @property
    def records(self) -> RecordArray: ...

    @property
    def buckets(self) -> int:
        """Their number."""
        ...

    def touched(self, ids: I64, order: I32, found: I32) -> I32:
        """The buckets of the ids at `order` that `found` has no row for."""
        ...


class ChangeRecorder:
    """Copies and marks of one stripe, whose rows are in `store`."""

    def __init__(self, store: RowStore, waiting: WaitingIds | None) -> None:
        self._store, self._waiting = store, waiting
        self._rows = RecordArray("rows", lambda: store.slab.rows, store.layout.words)
        self._freezes: list[Callable[[], FrozenStripe | None]] = []
        self._row_marks: ChangeMarks | None = None
        self._waiting_marks = ChangeMarks()
        self._before: I32 = np.empty((0, 0), np.int32)

    @property
    def freezes(self) -> Sequence[FrozenStripe]:
        """The freezes under way."""
        if not self._freezes:
            return ()
        found = [frozen for each in self._freezes if (frozen := each()) is not None]
        found = [frozen for frozen in found if not frozen.is_closed]
        self._freezes = [weakref.ref(frozen) for frozen in found]
        return found

    @property
    def is_idle(self) -> bool:
        """True if there is neither a freeze nor a delta to come."""
        return self._row_marks is None and not self.freezes

    def track_changes(self, consumer: str) -> None:
        """Begin to mark changes for a consumer."""
        if self._row_marks is None:
            self._row_marks, self._waiting_marks = ChangeMarks(), ChangeMarks()
        self._row_marks.follow(consumer)
        self._waiting_marks.follow(consumer)

    def freeze(
        self, is_delta: bool, lock: AbstractContextManager[None], consumer: str
    ) -> FrozenStripe:
        """The stripe as it is now; `lock` is for the walk over it."""
        marks, of_waiting = self._row_marks, self._waiting_marks
        bits, deleted = (np.zeros(0, np.uint8), np.empty(0, np.int64))
        waiting_bits: U8 | None = None
        if marks is not None and marks.has(consumer):
            bits, deleted = marks.freeze(consumer)
            waiting_bits, _ = of_waiting.freeze(consumer)

        def confirm() -> None:
            if marks is not None and waiting_bits is not None:
                marks.confirm(bits, consumer)
                of_waiting.confirm(waiting_bits, consumer)

        frozen = FrozenStripe(
            lock,
            FrozenRecords(self._rows, self._store.rows, bits if is_delta else None),
            self._frozen_waiting(waiting_bits if is_delta else None),
            deleted if is_delta else deleted[:0],
            confirm,
        )
        self._freezes = [*(weakref.ref(each) for each in self.freezes), weakref.ref(frozen)]
        return frozen

    # --- changes ---

    def before_update(self, ids: I64, order: I32, found: I32) -> None:
        """Save and mark what an update of rows `ids[order]` will change; `found` as in
        `RowStore.find`. Marks of rows follow when the update is made."""
        freezes, waiting = self.freezes, self._waiting
        if waiting is None and not any(frozen.has_rows for frozen in freezes):
            return
        self._store.find(ids, order, found)
        buckets = None if waiting is None else waiting.touched(ids, order, found)
        for frozen in freezes:
            frozen.save(found, buckets)
        if self._row_marks is not None and waiting is not None and buckets is not None:
            self._waiting_marks.mark(buckets, waiting.buckets)

    def after_update(self, found: I32) -> None:
        """Mark the rows at slots `found`."""
        if self._row_marks is not None:
            self._row_marks.mark(found, self._store.rows)

    def after_update_of_all(self) -> None:
        if self._row_marks is not None:
            self._row_marks.mark_all(self._store.rows)

    def before_put(self, buckets: I32) -> None:
        """Save and mark buckets of waiting ids, which will be replaced."""
        assert self._waiting is not None
        for frozen in self.freezes:
            frozen.save(buckets[:0], buckets)
        if self._row_marks is not None:
            self._waiting_marks.mark(buckets, self._waiting.buckets)

    def before_sweep(self, first: int, end: int) -> None:
        """Save rows `first` to `end`, any of which may change or be dropped."""
        self._save_with_tail(np.arange(first, end, dtype=np.int32))
        if self._row_marks is not None:
            self._before = self._store.slab.rows[first:end].view(np.int32).copy()

    def after_sweep(self, first: int, dropped: U8) -> None:
        """Mark the rows that a sweep has changed, or is about to drop."""
        if self._row_marks is not None:
            rows = self._store.slab.rows[first : first + len(dropped)].view(np.int32)
            changed = (rows != self._before).any(axis=1)
            self._mark_dropped((first + np.flatnonzero(dropped)).astype(np.int32))
            self.after_update((first + np.flatnonzero(changed)).astype(np.int32))

    def before_drop(self, slots: I32) -> None:
        """Save and mark the rows at `slots`, which will be dropped."""
        self._save_with_tail(slots)
        if self._row_marks is not None:
            self._mark_dropped(slots)

    def _save_with_tail(self, slots: I32) -> None:
        """Save these rows, and as many of the last ones: they may move to their places."""
        rows = self._store.rows
        for frozen in self.freezes:
            frozen.save(slots)
            frozen.save(np.arange(max(0, rows - len(slots)), rows, dtype=np.int32))

    def _mark_dropped(self, slots: I32) -> None:
        """Record the ids of dropped rows; rows that move into their places count as changed."""
        assert self._row_marks is not None
        if len(slots):
            self._row_marks.drop(ids_of(self._store.slab.rows[slots]))
            self.after_update(slots)

    def _frozen_waiting(self, changed: U8 | None) -> FrozenRecords | None:
        waiting = self._waiting
        return None if waiting is None else FrozenRecords(waiting.records, waiting.buckets, changed)
