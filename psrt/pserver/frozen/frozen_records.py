"""The records of an array as they were at a freeze, while they change in place.

A walker takes them in rising order. A record that is about to change and was not taken yet is
copied to a side buffer first, which the walker drains. So each record is handed out once, from one
place or the other. A record may move into the place of an earlier one, if both were saved before.

Side buffers are chunks of the heap, which a pserver reuses: fresh memory would double the time of
a push that meets pending rows only (13,312 of 16 by Adagrad).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from psrt.core.types import F32, I32, I64, U8
from psrt.kernels.tables import copy_on_write

SLICE_BYTES = 1 << 20
"""Records that are copied under one hold of a lock: 0.2 ms."""

_SCANNED = 1 << 22  # of those that need no copy


@dataclass(frozen=True)
class RecordArray:
    """An array (n, `words`) that a lock guards; `array` returns it, for use under the lock only.

    With `base` ≥ 0 copies have an int64 in front, `base` plus their number. Records that are zero
    from word `amounts_at` on hold nothing, unless that is −1.
    """

    name: str
    array: Callable[[], F32]
    words: int
    base: int = -1
    amounts_at: int = -1

    @property
    def copied_words(self) -> int:
        """The length of a copy."""
        return self.words + (2 if self.base >= 0 else 0)


class FrozenRecords:
    """The first `count` records of `source`, or with `changed` those whose bit is set there.

    `saved` counts copies made ahead of changes, no more than `count` are handed out. The caller
    holds the lock of the array; `take` and `drain` may share it with readers.
    """

    def __init__(self, source: RecordArray, count: int, changed: U8 | None = None) -> None:
        self.name = source.name
        self.saved = 0
        self.words = source.copied_words
        self.slice_size = max(1, SLICE_BYTES // (4 * self.words))
        self._array, self.count = source.array, count
        is_full = changed is None and source.amounts_at >= 0
        self._numbers = (source.amounts_at if is_full else source.words, max(0, source.base))
        self._done = _bits_without(changed, count)
        self._position: I64 = np.zeros(1, np.int64)
        self._full: list[F32] = []
        self._chunk: F32 = np.empty((0, self.words), np.float32)
        self._used: I64 = np.zeros(1, np.int64)  # records of the chunk

    @property
    def is_taken(self) -> bool:
        """True if only the side buffer is left."""
        return int(self._position[0]) >= self.count

    @property
    def size_bytes(self) -> int:
        """About the size of what the walker has still to take."""
        left = self.count - int(self._position[0])
        done = np.unpackbits(self._done[int(self._position[0]) // 8 :]).sum(dtype=np.int64)
        return 4 * self.words * max(0, left - int(done))

    @property
    def buffered_bytes(self) -> int:
        """The size of the side buffer."""
        return sum(chunk.nbytes for chunk in self._full) + 4 * self.words * int(self._used[0])

    def save(self, numbers: I32) -> None:
        """Copy those of the records `numbers` (n,) that are pending; negative ones are none.

        Raises `MemoryError`; then some may not be copied.
        """
        place, before = 0, int(self._used[0])
        while place < len(numbers) and not self.is_taken:
            place = copy_on_write.save_(
                *(self._array(), numbers, place, int(self._position[0]), self.count, self._done),
                *(*self._numbers, self._chunk, self._used),
            )
            self.saved += int(self._used[0]) - before
            if place < len(numbers):
                self._next_chunk()
            before = int(self._used[0])

    def save_slice(self) -> None:
        """Copy the next pending records: all are about to change. Raises `MemoryError`."""
        chunk = np.empty((self.slice_size, self.words), np.float32)
        count = self.take(chunk)
        self._full.append(chunk[:count])
        self.saved += count

    def take(self, out: F32) -> int:
        """Copy the next records to `out` (m, words), `slice_size` at most; returns their number."""
        end = min(self.count, int(self._position[0]) + _SCANNED)
        taken: int = copy_on_write.take_(
            *(self._array(), self._position, end, self._done, *self._numbers),
            out[: self.slice_size],
        )
        return taken

    def drain(self) -> list[F32]:
        """Return the copies in the side buffer, in chunks, and empty it."""
        self._next_chunk(0)
        full, self._full = self._full, []
        return full

    def _next_chunk(self, size: int = -1) -> None:
        chunk = np.empty((self.slice_size if size < 0 else size, self.words), np.float32)
        if self._used[0]:
            self._full.append(self._chunk[: int(self._used[0])])
        self._chunk, self._used[0] = chunk, 0


def _bits_without(changed: U8 | None, count: int) -> U8:
    """Bits (count,) that are set where `changed` has none; None = all are set there."""
    size = -(-count // 8)
    if changed is None:
        return np.zeros(size, np.uint8)
    done: U8 = np.full(size, 0xFF, np.uint8)
    known = min(size, len(changed))
    np.invert(changed[:known], out=done[:known])
    return done
