"""Records of an array that have changed since a freeze, for deltas.

Changes up to a freeze are pending until it is confirmed, that is, written to a safe place. The next
freeze then begins there; otherwise it hands out pending changes again. The caller holds the lock of
the array.
"""

from __future__ import annotations

import numpy as np

from psrt.core.types import I32, I64, U8
from psrt.kernels.tables import copy_on_write


class ChangeMarks:
    """A bit for each record, and the ids of records that were dropped."""

    def __init__(self) -> None:
        self._bits: U8 = np.zeros(1, np.uint8)
        self._dropped: list[I64] = []
        self._pending: U8 | None = None
        self._pending_dropped: list[I64] = []

    def mark(self, numbers: I32, count: int) -> None:
        """Mark records `numbers` (n,) of `count`; skips negative numbers."""
        self._reach(count)
        copy_on_write.mark_(self._bits, numbers)

    def mark_all(self, count: int) -> None:
        self._reach(count)
        self._bits.fill(0xFF)

    def drop(self, ids: I64) -> None:
        """Record that the records of `ids` (n,) are dropped."""
        self._dropped.append(ids)

    def freeze(self) -> tuple[U8, I64]:
        """Return bits and dropped ids of all changes since the latest freeze that is confirmed."""
        bits, dropped = self._bits, self._dropped
        if self._pending is not None:
            bits[: len(self._pending)] |= self._pending
            dropped = self._pending_dropped + dropped
        self._pending, self._pending_dropped = bits, dropped
        self._bits, self._dropped = np.zeros_like(bits), []
        return bits, np.concatenate([np.empty(0, np.int64), *dropped])

    def confirm(self, bits: U8) -> None:
        """Drop the changes of the freeze with these `bits`, unless a later freeze has them too."""
        if self._pending is bits:
            self._pending, self._pending_dropped = None, []

    def _reach(self, count: int) -> None:
        if 8 * len(self._bits) < count:
            grown: U8 = np.zeros(-(-count // 4), np.uint8)
            grown[: len(self._bits)] = self._bits
            self._bits = grown
