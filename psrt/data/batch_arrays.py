"""The arrays of a batch while a kernel fills them: one of ids, one of floats, one of offsets.

Slots of a kind lie behind each other in one array. Dense slots have their place for good; ragged
ones begin with room for one value an example and are widened when a kernel finds them full. A batch
that was taken is never written again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from psrt.core.tensors import Ragged
from psrt.core.types import F32, I64, Array
from psrt.data.slots import Batch, Slot
from psrt.kernels import multislot as kernel


class BatchArrays:
    """`layout` has `kernel.LAYOUT_COLUMNS` for each slot; see `kernel.parse_rows` for the rest."""

    layout: I64
    ids: I64
    floats: F32
    offsets: I64

    def __init__(self, slots: Sequence[Slot], batch_size: int) -> None:
        self._slots, self._batch_size = tuple(slots), batch_size
        self._ragged_slots = sum(slot.size is None for slot in slots)
        self.layout = self._first_layout()
        self._place()

    def widen(self, slot: int, count: int, rows: int) -> None:
        """More room for a ragged slot; `rows` examples so far move along with all others."""
        batch, offsets = self.windows(rows), self.offsets
        self.layout[slot, kernel.CAPACITY] *= 2
        self.layout[slot, kernel.CAPACITY] += count
        self._place()
        self.offsets = offsets
        for name, values in self.windows(rows).items():
            _values(values)[...] = _values(batch[name])

    def windows(self, rows: int) -> Batch:
        """The first `rows` examples, slot by slot."""
        batch: Batch = {}
        for run in self._runs:
            values: Array = self.floats if run.is_float else self.ids
            if run.size is None:
                offsets = self.offsets[run.line, : rows + 1]
                stop = run.start + int(offsets[rows])
                batch[run.names[0]] = Ragged(values[run.start : stop], offsets)
            else:
                shape = (len(run.names), self._batch_size, run.size)
                fields = values[run.start : run.stop].reshape(shape)[:, :rows]
                batch.update(zip(run.names, fields, strict=True))
        return batch

    def take(self, rows: int) -> Batch:
        """The first `rows` examples; the next batch has fresh arrays."""
        batch = self.windows(rows)
        self._allocate()
        return batch

    def _first_layout(self) -> I64:
        layout = np.zeros((len(self._slots), kernel.LAYOUT_COLUMNS), np.int64)
        ragged = 0
        for row, slot in zip(layout, self._slots, strict=True):
            row[kernel.IS_FLOAT] = slot.dtype == "float"
            row[kernel.SIZE] = kernel.RAGGED if slot.size is None else slot.size
            row[kernel.CAPACITY] = self._batch_size * (slot.size or 1)
            row[kernel.OFFSETS_ROW] = ragged
            ragged += slot.size is None
        return layout

    def _place(self) -> None:
        """Lay the slots of a kind behind each other, and allocate."""
        self._kind_sizes = [0, 0]
        for row in self.layout:
            kind = row[kernel.IS_FLOAT]
            row[kernel.BASE] = self._kind_sizes[kind]
            self._kind_sizes[kind] += int(row[kernel.CAPACITY])
        self._runs = _runs(self._slots, self.layout.tolist())
        self._allocate()

    def _allocate(self) -> None:
        self.ids = np.empty(self._kind_sizes[0], np.int64)
        self.floats = np.empty(self._kind_sizes[1], np.float32)
        self.offsets = np.empty((self._ragged_slots, self._batch_size + 1), np.int64)
        self.offsets[:, 0] = 0


class _Run(NamedTuple):
    """Dense slots of a kind and size which lie behind each other, or (`size` is None) one ragged
    slot. Cutting a whole run at once saves a tenth of the time of small batches."""

    names: list[str]
    is_float: bool
    size: int | None
    start: int
    stop: int
    line: int


def _runs(slots: Sequence[Slot], rows: list[list[int]]) -> list[_Run]:
    """`rows` are those of the layout."""
    runs: list[_Run] = []
    for slot, row in zip(slots, rows, strict=True):
        is_float, start = slot.dtype == "float", row[kernel.BASE]
        names, stop = [slot.name], start + row[kernel.CAPACITY]
        if runs and slot.size and (is_float, slot.size) == (runs[-1].is_float, runs[-1].size):
            before = runs.pop()
            names, start = before.names + names, before.start
        runs.append(_Run(names, is_float, slot.size, start, stop, row[kernel.OFFSETS_ROW]))
    return runs


def _values(slot: Array | Ragged) -> Array:
    return slot.values if isinstance(slot, Ragged) else slot
