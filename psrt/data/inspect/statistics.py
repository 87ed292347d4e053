"""Values, ids and their skew, slot by slot.

Ids are counted exactly up to a limit of distinct ones. Beyond it only ids whose hash begins with a
zero bit are kept, then those with two, and so on (adaptive sampling, after Wegman and Flajolet).
Shares are then those of a sample of ids, and their number is an estimate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from psrt.core.tensors import Ragged
from psrt.core.types import F64, I64, Array
from psrt.data.slots import Batch, Slot

Mask: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"

EXACT_IDS = 2_000_000
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: Fibonacci hashing


class IdCounts:
    """Distinct ids and their occurrences; at most `limit` of them are kept."""

    def __init__(self, limit: int = EXACT_IDS) -> None:
        self._limit = limit
        self._ids: I64 = np.empty(0, np.int64)
        self._counts: I64 = np.empty(0, np.int64)
        self._waiting: list[I64] = []
        self._waiting_values = 0
        self._zero_bits = 0

    def add(self, ids: I64) -> None:
        """Count ids (n,) int64 bit patterns."""
        kept = ids[_begins_with_zeros(ids, self._zero_bits)] if self._zero_bits else ids
        self._waiting.append(kept)
        self._waiting_values += len(kept)
        if self._waiting_values > self._limit:
            self._merge()

    @property
    def sampled(self) -> int:
        """One of `sampled` ids is kept; 1 = all."""
        return 1 << self._zero_bits

    @property
    def distinct(self) -> int:
        """Number of distinct ids; an estimate if `sampled` is above 1."""
        return len(self.counts()) * self.sampled

    def counts(self) -> I64:
        """Return the occurrences of each id kept, (ids,) int64, in any order."""
        if self._waiting:
            self._merge()
        return self._counts

    def top_share(self, fraction: float = 0.01) -> float:
        """Return the share of all occurrences that the most frequent `fraction` of ids has."""
        counts = np.sort(self.counts())[::-1]
        top = math.ceil(fraction * len(counts))
        return float(counts[:top].sum() / counts.sum()) if len(counts) else 0.0

    def histogram(self) -> I64:
        """Return in element k the number of ids kept that occur 2^k … 2^(k+1) − 1 times."""
        return np.bincount(np.frexp(self.counts().astype(np.float64))[1] - 1).astype(np.int64)

    def _merge(self) -> None:
        new, new_counts = np.unique(np.concatenate(self._waiting), return_counts=True)
        ids = np.concatenate((self._ids, new))
        self._ids, places = np.unique(ids, return_inverse=True)
        counts = np.zeros(len(self._ids), np.int64)
        np.add.at(counts, places, np.concatenate((self._counts, new_counts)))
        self._counts, self._waiting, self._waiting_values = counts, [], 0
        while len(self._ids) > self._limit:
            self._zero_bits += 1
            kept = _begins_with_zeros(self._ids, self._zero_bits)
            self._ids, self._counts = self._ids[kept], self._counts[kept]


class SlotStatistics:
    """Statistics of one slot; `low`, `high` and `total` are of floats, `ids` of ids."""

    def __init__(self, slot: Slot, limit: int = EXACT_IDS) -> None:
        self.slot = slot
        self.examples = self.values = self.missing = self.longest = self.zeros = 0
        self.low, self.high, self.total = math.inf, -math.inf, 0.0
        self.ids = IdCounts(limit)

    def add(self, fed: Array | Ragged) -> None:
        """Count the slot's values in a batch; an example without values is missing."""
        values, lengths = _flat(fed)
        self.examples += len(lengths)
        self.values += len(values)
        self.missing += int(np.count_nonzero(lengths == 0))
        self.longest = max(self.longest, int(lengths.max(initial=0)))
        self.zeros += int(np.count_nonzero(values == 0))
        if self.slot.dtype == "uint64":
            self.ids.add(values)
        elif len(values):
            self._add_floats(values.astype(np.float64))

    def _add_floats(self, values: F64) -> None:
        self.low = min(self.low, float(values.min()))
        self.high = max(self.high, float(values.max()))
        self.total += float(values.sum())


def gather(
    batches: Iterable[Batch], slots: Sequence[Slot], limit: int = EXACT_IDS
) -> dict[str, SlotStatistics]:
    """Return the statistics of each slot over all batches."""
    found = {slot.name: SlotStatistics(slot, limit) for slot in slots}
    for batch in batches:
        for name, statistics in found.items():
            statistics.add(batch[name])
    return found


def _begins_with_zeros(ids: I64, bits: int) -> Mask:
    mixed = ids.view(np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * _ODD
    chosen: Mask = mixed >> np.uint64(64 - bits) == 0
    return chosen


def _flat(fed: Array | Ragged) -> tuple[Array, I64]:
    """Return all values, and the number of each example."""
    if isinstance(fed, Ragged):
        return fed.values, np.diff(fed.offsets)
    rows = len(fed)
    return fed.reshape(-1), np.full(rows, fed.size // max(1, rows), np.int64)
