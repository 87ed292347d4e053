"""The memory of a batch while a kernel fills it: words of 4 bytes, and offsets of ragged slots.

Slots are consecutive, ids first, so that all are aligned. Dense slots have a fixed size; ragged
slots begin with room for one value per example and are widened when a kernel fills them. A batch
that was taken is never written again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from psrt.core.errors import ConfigError
from psrt.core.tensors import Ragged
from psrt.core.types import F32, I64, Array
from psrt.data.slots import Batch, Slot, shared_offsets
from psrt.kernels.text import multislot as kernel

DTYPES: dict[str, np.dtype[Any]] = {"uint64": np.dtype(np.int64), "float": np.dtype(np.float32)}
"""dtype of the values of a slot, in batches and in memory."""


def layout_of(slots: Sequence[Slot]) -> I64:
    """Return (slots, kernel.LAYOUT_COLUMNS) int64, without addresses."""
    layout = np.zeros((len(slots), kernel.LAYOUT_COLUMNS), np.int64)
    layout[:, kernel.IS_FLOAT] = [slot.dtype == "float" for slot in slots]
    layout[:, kernel.WORDS] = [DTYPES[slot.dtype].itemsize // kernel.WORD_BYTES for slot in slots]
    layout[:, kernel.SIZE] = [slot.size or kernel.RAGGED for slot in slots]
    ragged = layout[:, kernel.SIZE] == kernel.RAGGED
    layout[:, kernel.COUNTS] = np.cumsum(ragged) - ragged
    for at in range(len(slots) - 1, -1, -1):
        if (slots[at].dtype, slots[at].size) == ("uint64", 1):
            layout[at, kernel.RUN] = 1 + (layout[at + 1, kernel.RUN] if at + 1 < len(slots) else 0)
    return layout


class BatchArrays:
    """`layout` is (slots, kernel.LAYOUT_COLUMNS); for `words` and `offsets` see `parse_rows`."""

    words: F32
    offsets: I64

    def __init__(self, slots: Sequence[Slot], batch_size: int) -> None:
        self._slots, self._batch_size = tuple(slots), batch_size
        self._ragged_slots = sum(slot.size is None for slot in slots)
        self.layout = layout_of(slots)
        values = [batch_size * (slot.size or 1) for slot in slots]
        self.layout[:, kernel.CAPACITY] = self.layout[:, kernel.WORDS] * values
        self.layout[:, kernel.RUN_STEP] = kernel.ID_WORDS * batch_size
        self._place()

    def widen(self, slot: int, count: int, rows: int) -> None:
        """Make room for `count` more values of a ragged slot; keep the first `rows` examples."""
        batch, offsets = self.windows(rows), self.offsets
        row = self.layout[slot]
        row[kernel.CAPACITY] = 2 * row[kernel.CAPACITY] + count * row[kernel.WORDS]
        self._place()
        self.offsets = offsets
        for name, values in self.windows(rows).items():
            _values(values)[...] = _values(batch[name])

    def windows(self, rows: int) -> Batch:
        """Return the first `rows` examples as windows, slot by slot."""
        batch: Batch = {}
        lists = shared_offsets(self.offsets[:, : rows + 1])
        for run in self._runs:
            values: Array = self.words[run.start : run.stop].view(DTYPES[run.dtype])
            if run.size is None:
                offsets = lists[run.line]
                batch[run.names[0]] = Ragged(values[: int(offsets[rows])], offsets)
            else:
                fields = values.reshape(len(run.names), self._batch_size, run.size)[:, :rows]
                batch.update(zip(run.names, fields, strict=True))
        return batch

    def take(self, rows: int) -> Batch:
        """Return the first `rows` examples; the next batch gets fresh arrays."""
        batch = self.windows(rows)
        self._allocate()
        return batch

    def _place(self) -> None:
        """Assign consecutive addresses to the slots, those of ids first, and allocate."""
        is_float, widths = self.layout[:, kernel.IS_FLOAT], self.layout[:, kernel.CAPACITY]
        order = np.argsort(is_float, kind="stable")
        self.layout[order, kernel.BASE] = np.cumsum(widths[order]) - widths[order]
        self._words = int(widths.sum())
        self._runs = _runs(self._slots, self.layout.tolist())
        self._allocate()

    def _allocate(self) -> None:
        try:
            self.words = np.empty(self._words, np.float32)
            self.offsets = np.empty((self._ragged_slots, self._batch_size + 1), np.int64)
        except MemoryError as error:
            raise ConfigError(
                f"a batch of {self._batch_size:,} examples does not fit into memory ({error}).",
                hint="Set a smaller batch_size.",
            ) from error
        self.offsets[:, 0] = 0


class _SlotRun(NamedTuple):
    """Consecutive dense slots of one kind and size, or (`size` is None) one ragged slot. Cutting a
    whole run at once saves a tenth of the time of small batches."""

    names: list[str]
    dtype: str
    size: int | None
    start: int
    stop: int
    line: int


def _runs(slots: Sequence[Slot], rows: list[list[int]]) -> list[_SlotRun]:
    """Return the runs of slots; `rows` are those of the layout."""
    runs: list[_SlotRun] = []
    for slot, row in zip(slots, rows, strict=True):
        names, start = [slot.name], row[kernel.BASE]
        stop = start + row[kernel.CAPACITY]
        if runs and slot.size and (slot.dtype, slot.size) == (runs[-1].dtype, runs[-1].size):
            before = runs.pop()
            names, start = before.names + names, before.start
        runs.append(_SlotRun(names, slot.dtype, slot.size, start, stop, row[kernel.COUNTS]))
    return runs


def _values(slot: Array | Ragged) -> Array:
    return slot.values if isinstance(slot, Ragged) else slot
