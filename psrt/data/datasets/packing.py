"""Batches of parsers, packed into records.

A `Packer` belongs to one thread; the words of its records are in an arena of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from psrt.core.tensors import Ragged
from psrt.core.types import I64, U8, U32, Array
from psrt.data.datasets.records import Arena, Layout, Records
from psrt.data.slots import Batch, batch_rows, ends_of
from psrt.kernels.text import records as kernel

_DENSE: I64 = np.empty(0, np.int64)
_COUNT_BYTES = (1, 2, 4, 8)


class Packer:
    """Packs batches; `texts` are the names of fields of bytes."""

    def __init__(self, layout: Layout, texts: Sequence[str] = ()) -> None:
        self._layout, self._texts = layout, tuple(texts)
        self._arena = Arena()

    def pack(self, batch: Batch) -> Records:
        """Return copies of the examples of a batch; their texts are kept."""
        counts = self._counts(batch)
        starts = self._starts(counts)
        ends, words = starts[:-1].copy(), self._arena.take(int(starts[-1]))
        for name, _, width, size, _ in self._layout.fields:
            values, offsets = _parts(batch[name])
            if size != kernel.RAGGED:
                width *= size
            kernel.append_slot(values, offsets, width, ends, words)
        if not self._layout.ragged_slots:
            starts = starts[:0]
        texts = {name: cast("Ragged", batch[name]) for name in self._texts}
        return Records(self._layout, words, starts, _as_bytes(counts), texts)

    def _counts(self, batch: Batch) -> I64:
        """Return the number of values of each ragged slot, (rows, ragged slots)."""
        counts = np.empty((batch_rows(batch), self._layout.ragged_slots), np.int64)
        for name, _, _, size, line in self._layout.fields:
            if size == kernel.RAGGED:
                offsets = cast("Ragged", batch[name]).offsets
                np.subtract(offsets[1:], offsets[:-1], out=counts[:, line])
        return counts

    def _starts(self, counts: I64) -> I64:
        widths = self._layout.table[self._layout.is_ragged, kernel.WORDS]
        return ends_of(self._layout.stride + counts @ widths)


def _parts(fed: Array | Ragged) -> tuple[U32, I64]:
    """Return the words of a slot, and the offsets of its values unless it is dense."""
    values, offsets = (fed.values, fed.offsets) if isinstance(fed, Ragged) else (fed, _DENSE)
    return np.ascontiguousarray(values).reshape(-1).view(np.uint32), offsets


def _as_bytes(counts: I64) -> U8:
    """Return (rows, slots, bytes of a number) uint8, with the bytes that the largest needs."""
    most = int(counts.max(initial=0))
    size = next(size for size in _COUNT_BYTES if most < 1 << (8 * size))
    return counts.astype(f"<u{size}").view(np.uint8).reshape(*counts.shape, size)
