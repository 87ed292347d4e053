"""Examples kept in memory as a few arrays, of any number of records.

The values of a record are consecutive, slot after slot, so that a random record costs a few cache
lines; see `psrt.kernels.text.records`. Bytes of a record:

    8 for each id, 4 for each float
    with ragged slots: 8, and for each of them 1, 2 or 4, if the longest has up to 255, 65,535, more
    for each text (ins_id, content): 8, and its bytes

`Records` are never changed: chosen and joined ones are new. Any thread may read them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from psrt.core.tensors import Ragged
from psrt.core.types import I64, U8, U32, Array
from psrt.data.formats import DTYPES
from psrt.data.formats import joined as joined_batches
from psrt.data.slots import Batch, Slot, ends_of, shared_offsets
from psrt.kernels.text import records as kernel

# glibc may keep smaller ones for itself.
_ARENA_WORDS = (64 << 20) // kernel.WORD_BYTES


class Layout:
    """The memory layout of records with some slots."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.slots = tuple(slots)
        self.is_ragged = np.array([slot.size is None for slot in slots], np.bool_)
        self.table: I64 = np.zeros((len(self.slots), kernel.LAYOUT_COLUMNS), np.int64)
        self.table[:, kernel.WORDS] = [DTYPES[s.dtype].itemsize // kernel.WORD_BYTES for s in slots]
        self.table[:, kernel.SIZE] = [slot.size or kernel.RAGGED for slot in slots]
        self.table[:, kernel.COUNTS] = np.cumsum(self.is_ragged) - self.is_ragged
        self.ragged_slots = int(self.is_ragged.sum())
        words = self.table[:, kernel.WORDS]
        self.stride = int((words * self.table[:, kernel.SIZE])[~self.is_ragged].sum())
        """Words of all dense slots of a record."""
        self.ids_first = np.argsort(-words, kind="stable")
        """The order in which consecutive arrays of slots are aligned."""
        self.fields = [
            (slot.name, DTYPES[slot.dtype], *row)
            for slot, row in zip(self.slots, self.table.tolist(), strict=True)
        ]


@dataclass(frozen=True)
class SlotExchange:
    """Slots in which record i has the values of record `order[i]`."""

    slots: frozenset[str]
    order: I64


@dataclass(frozen=True)
class Records:
    """`words` (n,) uint32; `starts` (records + 1,) int64, or (0,) where no slot is ragged; `counts`
    (records, ragged slots, bytes of a number) uint8; `texts` by name, values of uint8."""

    layout: Layout
    words: U32
    starts: I64
    counts: U8
    texts: Mapping[str, Ragged] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def memory_bytes(self) -> int:
        arrays: list[Array] = [self.words, self.starts, self.counts]
        arrays += [a for text in self.texts.values() for a in (text.values, text.offsets)]
        return sum(array.nbytes for array in arrays)

    def batch(self, rows: I64, exchange: SlotExchange | None = None) -> Batch:
        """Return the records `rows` (n,) as a batch: dense slots (n, size), others `Ragged`."""
        layout = self.layout
        parts = self._parts(rows, exchange)
        offsets = np.zeros((layout.ragged_slots, len(rows) + 1), np.int64)
        for some, wanted in parts:
            kernel.count_values(self.counts, some, wanted[layout.is_ragged], offsets)
        bases, total = _bases(layout, len(rows), offsets)
        out, at = np.empty(total, np.uint32), np.empty(kernel.BLOCK_ROWS, np.int64)
        for some, wanted in parts:
            kernel.gather(
                *(self.words, self.starts, layout.stride, self.counts),
                *(some, layout.table, wanted, bases, offsets, at, out),
            )
        return _windows(layout, len(rows), offsets, bases, out)

    def take(self, rows: I64) -> Records:
        """Return copies of the records `rows` (n,), in that order."""
        layout, starts = self.layout, self.starts
        total = len(rows) * layout.stride
        if layout.ragged_slots:
            starts = ends_of(self.starts[rows + 1] - self.starts[rows])
            total = int(starts[-1])
        words = np.empty(total, np.uint32)
        kernel.copy_records(self.words, self.starts, layout.stride, rows, words)
        texts = {name: taken(text, rows) for name, text in self.texts.items()}
        return Records(layout, words, starts, self.counts[rows], texts)

    def _parts(self, rows: I64, exchange: SlotExchange | None) -> list[tuple[I64, Array]]:
        """Return pairs of records and a mask of the slots that are read from them."""
        if exchange is None:
            return [(rows, np.ones(len(self.layout.slots), np.bool_))]
        exchanged = np.array([slot.name in exchange.slots for slot in self.layout.slots])
        return [(rows, ~exchanged), (exchange.order[rows], exchanged)]


class Arena:
    """Memory for the words of many records, taken piece by piece.

    `free` (n,) uint32 are the words not taken yet. An arena belongs to one thread. The allocator
    returns such large arrays to the system once the last piece on them is gone; pages that were
    never reached cost nothing.
    """

    def __init__(self) -> None:
        self.free: U32 = np.empty(0, np.uint32)

    def renew(self, words: int = 0) -> None:
        """Drop the free words; `words` or more are free afterwards."""
        self.free = np.empty(max(words, _ARENA_WORDS), np.uint32)

    def take(self, words: int) -> U32:
        """Return the next `words` words, of a new array if too few are free."""
        if words > len(self.free):
            self.renew(words)
        taken, self.free = self.free[:words], self.free[words:]
        return taken


def joined(layout: Layout, pieces: deque[Records]) -> Records:
    """Return all records of `pieces`, in order; drops each piece once it is copied."""
    rows = sum(map(len, pieces))
    width = max((piece.counts.shape[2] for piece in pieces), default=1)
    texts = joined_batches([dict(piece.texts) for piece in pieces]) if pieces else {}
    words = np.empty(sum(len(piece.words) for piece in pieces), np.uint32)
    starts = np.zeros(rows + 1 if layout.ragged_slots else 0, np.int64)
    counts = np.zeros((rows, layout.ragged_slots, width), np.uint8)
    row = word = 0
    while pieces:
        piece = pieces.popleft()
        words[word : word + len(piece.words)] = piece.words
        counts[row : row + len(piece), :, : piece.counts.shape[2]] = piece.counts
        if layout.ragged_slots:
            starts[row + 1 : row + 1 + len(piece)] = piece.starts[1:] + word
        row, word = row + len(piece), word + len(piece.words)
    return Records(layout, words, starts, counts, cast("dict[str, Ragged]", texts))


def _bases(layout: Layout, rows: int, offsets: I64) -> tuple[I64, int]:
    """Return the first word of each slot of a batch, and the number of all words."""
    table, values = layout.table, np.full(len(layout.slots), rows, np.int64)
    values[~layout.is_ragged] *= table[~layout.is_ragged, kernel.SIZE]
    values[layout.is_ragged] = offsets[:, -1]
    words = (values * table[:, kernel.WORDS])[layout.ids_first]
    bases = np.empty(len(words), np.int64)
    bases[layout.ids_first] = np.cumsum(words) - words
    return bases, int(words.sum())


def _windows(layout: Layout, rows: int, offsets: I64, bases: I64, out: U32) -> Batch:
    batch: Batch = {}
    lists = shared_offsets(offsets)
    for (name, dtype, width, size, line), base in zip(layout.fields, bases.tolist(), strict=True):
        if size == kernel.RAGGED:
            stop = base + int(lists[line][-1]) * width
            batch[name] = Ragged(out[base:stop].view(dtype), lists[line])
        else:
            batch[name] = out[base : base + rows * size * width].view(dtype).reshape(rows, size)
    return batch


def taken(text: Ragged, rows: I64) -> Ragged:
    """Return the elements `rows` (n,) of a ragged array."""
    lengths = np.diff(text.offsets)[rows]
    offsets = ends_of(lengths)
    index = np.repeat(text.offsets[rows] - offsets[:-1], lengths) + np.arange(offsets[-1])
    return Ragged(text.values[index], offsets)
