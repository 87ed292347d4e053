"""Records of an array that have changed since a freeze, for deltas of several consumers.

Each consumer takes deltas at its own times: a chain of cuts, files of deltas, a backup. Updates
mark one set of bits; when a consumer freezes the array, these are added to those of the others.

Changes up to a freeze are pending until it is confirmed, that is, written to a safe place. The next
freeze of this consumer then begins there; otherwise it hands out pending changes again. The caller
holds the lock of the array.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from psrt.core.types import I32, I64, U8
from psrt.kernels.tables import copy_on_write

CUTS = "cuts"
"""The consumer of deltas for chains of cuts."""


def _no_bits() -> U8:
    return np.zeros(1, np.uint8)


@dataclass
class _Changes:
    """Changes for one consumer: since its last freeze, and those of freezes not confirmed."""

    bits: U8 = field(default_factory=_no_bits)
    dropped: list[I64] = field(default_factory=list)
    pending: U8 | None = None
    pending_dropped: list[I64] = field(default_factory=list)

    def add(self, bits: U8, dropped: list[I64]) -> None:
        self.bits = _both(self.bits, bits)
        self.dropped += dropped

    def take(self) -> tuple[U8, I64]:
        """Make all changes pending; returns them."""
        bits, dropped = self.bits, self.pending_dropped + self.dropped
        if self.pending is not None:
            bits = _both(bits, self.pending)
        self.pending, self.pending_dropped = bits, dropped
        self.bits, self.dropped = _no_bits(), []
        return bits, np.concatenate([np.empty(0, np.int64), *dropped])


class ChangeMarks:
    """A bit for each record, and the ids of records that were dropped."""

    def __init__(self) -> None:
        self._bits = _no_bits()  # changes that no consumer has yet
        self._dropped: list[I64] = []
        self._consumers: dict[str, _Changes] = {}

    def follow(self, consumer: str = CUTS) -> None:
        """Collect changes for a consumer from now on; its earlier ones are forgotten."""
        self._collect()
        self._consumers[consumer] = _Changes()

    def has(self, consumer: str) -> bool:
        """Return True if changes are collected for this consumer."""
        return consumer in self._consumers

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

    def freeze(self, consumer: str = CUTS) -> tuple[U8, I64]:
        """Return bits and dropped ids of all changes since this consumer's latest freeze that is
        confirmed."""
        self._collect()
        return self._consumers[consumer].take()

    def confirm(self, bits: U8, consumer: str = CUTS) -> None:
        """Drop the changes of the freeze with these `bits`, unless a later freeze has them too."""
        changes = self._consumers.get(consumer)
        if changes is not None and changes.pending is bits:
            changes.pending, changes.pending_dropped = None, []

    def _collect(self) -> None:
        """Give the latest changes to all consumers."""
        for changes in self._consumers.values():
            changes.add(self._bits, self._dropped)
        self._bits, self._dropped = np.zeros_like(self._bits), []

    def _reach(self, count: int) -> None:
        if 8 * len(self._bits) < count:
            grown: U8 = np.zeros(-(-count // 4), np.uint8)
            grown[: len(self._bits)] = self._bits
            self._bits = grown


def _both(one: U8, other: U8) -> U8:
    """Bits that are set in one of two arrays, in a new array."""
    long, short = (one, other) if len(one) >= len(other) else (other, one)
    both = long.copy()
    both[: len(short)] |= short
    return both
