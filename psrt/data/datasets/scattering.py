"""Records on their way to other trainers, and records as tensors.

    Scattering.deal ──(trainer, Records)──▶ tensors_of ──▶ … ──▶ records_of ──▶ Shelf.put ──▶ taken

A `RecordExchange` moves the tensors. Records are dropped piece by piece as they are scattered, so
the memory needed is that of the records under way, not twice the pass.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from psrt.core.errors import WireError
from psrt.core.tensors import Ragged
from psrt.core.types import I32, I64, U8, Array
from psrt.data.datasets.records import Layout, Records, joined
from psrt.data.slots import ends_of
from psrt.kernels.text import destinations as kernel
from psrt.kernels.text import records as record_kernel

BATCH_RECORDS = 1024
"""PaddlePaddle's `fleet_send_batch_size`."""

_NUMBERS_OF_A_TRAINER = 40  # bits: records of different trainers are numbered apart
_SHELF_WORDS = (16 << 20) // record_kernel.WORD_BYTES


@dataclass
class Scattering:
    """The records of one trainer, to be scattered over all.

    `pieces` are dropped as they are scattered. The destination of a record is drawn from `seed`,
    its trainer and its number there; with `by`, the name of a text, it is a hash of that text, so
    that equal texts meet. `batch_records` travel together.
    """

    layout: Layout
    pieces: deque[Records]
    texts: tuple[str, ...] = ()
    batch_records: int = BATCH_RECORDS
    seed: int = 0
    by: str = ""

    @property
    def records(self) -> int:
        return sum(map(len, self.pieces))

    def digest(self) -> str:
        """Return a digest, equal on trainers with one kind of records and one rule."""
        slots = [(slot.name, slot.dtype, slot.size) for slot in self.layout.slots]
        return hashlib.sha256(repr((slots, self.texts, self.by)).encode()).hexdigest()

    def deal(self, trainer: int, trainers: int) -> Iterator[tuple[int, Records]]:
        """Yield (trainer, its records), roughly `batch_records` at a time.

        Every trainer begins with a different one, so that not all send to the first at once.
        """
        first = trainer << _NUMBERS_OF_A_TRAINER
        while self.pieces:
            piece = self._next(self.batch_records * trainers)
            for start in range(0, len(piece), self.batch_records * trainers):
                stop = min(start + self.batch_records * trainers, len(piece))
                rows = np.arange(start, stop)
                destinations = self._destinations(piece, rows, first + start, trainers)
                for step in range(1, trainers + 1):
                    to = (trainer + step) % trainers
                    if len(own := rows[destinations == to]):
                        yield to, piece.take(own)
            first += len(piece)

    def _next(self, least: int) -> Records:
        """Return a piece of `least` records or more, or all that are left; joins small ones."""
        if len(self.pieces[0]) >= least:
            return self.pieces.popleft()
        some, count = deque[Records](), 0
        while self.pieces and count < least:
            some.append(self.pieces.popleft())
            count += len(some[-1])
        return joined(self.layout, some)

    def _destinations(self, piece: Records, rows: I64, first: int, trainers: int) -> I32:
        to = np.empty(len(rows), np.int32)
        if not self.by:
            kernel.deal_by_number(self.seed, first, trainers, to)
            return to
        text = piece.texts[self.by]
        offsets = text.offsets[rows[0] : rows[-1] + 2]
        kernel.deal_by_text(np.ascontiguousarray(text.values, np.uint8), offsets, trainers, to)
        return to


class RecordExchange(Protocol):
    """Moves records between trainers: a connected executor, or Fluid's `fleet`."""

    def exchange_records(self, scattering: Scattering) -> deque[Records]:
        """Send all records; return those this trainer has afterwards, in pieces.

        Every trainer calls it equally often. The order depends on seeds and trainer ids only.
        Raises an error if any record did not arrive exactly once.
        """
        ...

    def sum_records(self, count: int) -> int:
        """Return the sum over all trainers; every trainer calls it equally often."""
        ...


class Shelf:
    """Records of one sender, in the order received; joins small ones."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._whole: deque[Records] = deque()
        self._loose: deque[Records] = deque()
        self._loose_words = 0
        self.records = 0

    def put(self, records: Records) -> None:
        """Append records."""
        self.records += len(records)
        self._loose.append(records)
        self._loose_words += len(records.words)
        if self._loose_words >= _SHELF_WORDS:
            self._join()

    def take(self) -> deque[Records]:
        """Return and drop all records."""
        if self._loose:
            self._join()
        whole, self._whole = self._whole, deque()
        return whole

    def _join(self) -> None:
        self._whole.append(joined(self._layout, self._loose))
        self._loose_words = 0


def tensors_of(records: Records, texts: Sequence[str]) -> list[Array]:
    """Return `words` (n,) int32, `counts` (records, ragged slots, bytes) uint8, and for each text
    its values (bytes,) uint8 and lengths (records,) int64. Starts of records follow from these."""
    tensors: list[Array] = [records.words.view(np.int32), records.counts]
    for name in texts:
        text = records.texts[name]
        tensors += [text.values, np.diff(text.offsets)]
    return tensors


def records_of(layout: Layout, texts: Sequence[str], tensors: Sequence[Any]) -> Records:
    """Invert `tensors_of`; raises `WireError` for tensors that are no records of this layout."""
    _check_kinds(layout, texts, tensors)
    words, counts = tensors[:2]
    if not layout.ragged_slots and len(words) != len(counts) * layout.stride:
        # Counts of no slots take no bytes: their number is whatever the caller says.
        raise _malformed(f"{len(words):,} words for {len(counts):,} records")
    starts = _starts(layout, counts)
    if len(words) != starts[-1]:
        raise _malformed(f"{len(words):,} words, but its records have {int(starts[-1]):,}")
    found = {
        name: _text(name, values, lengths, len(counts))
        for name, values, lengths in zip(texts, tensors[2::2], tensors[3::2], strict=True)
    }
    kept = starts if layout.ragged_slots else starts[:0]
    return Records(layout, words.view(np.uint32), kept, counts, found)


def _check_kinds(layout: Layout, texts: Sequence[str], tensors: Sequence[Any]) -> None:
    wanted = [("int32", 1), ("uint8", 3), *(("uint8", 1), ("int64", 1)) * len(texts)]
    kinds = [(tensor.dtype.name, tensor.ndim) for tensor in tensors]
    if kinds != wanted:
        raise _malformed(f"tensors of {kinds}, expected {wanted}")
    _, ragged, width = tensors[1].shape
    if ragged != layout.ragged_slots or width not in (1, 2, 4, 8):
        raise _malformed(f"counts of {ragged} slots in {width} bytes each")


def _starts(layout: Layout, counts: U8) -> I64:
    """Return the first word of each record, and the end of the last."""
    rows, ragged, width = counts.shape
    if not ragged:
        return np.arange(rows + 1) * layout.stride
    numbers = counts.reshape(rows, -1).view(f"<u{width}").astype(np.int64)
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < 1 << 31:
        raise _malformed("counts of 2^31 values and more")
    return ends_of(layout.stride + numbers @ layout.table[layout.is_ragged, record_kernel.WORDS])


def _text(name: str, values: U8, lengths: I64, rows: int) -> Ragged:
    if len(lengths) != rows or (rows and lengths.min() < 0) or lengths.sum() != len(values):
        raise _malformed(f"a text {name!r} whose lengths do not fit")
    return Ragged(values, ends_of(lengths))


def _malformed(what: str) -> WireError:
    return WireError(f"a call with records has {what}; it was refused.")
