"""Which ids of a table are pulled most, in a few KiB, whatever the number of ids.

Every `EVERY`-th id pulled is noted; each time the notes are full they are counted into a summary of
CAPACITY ids: counts are added, and the largest count that finds no place is taken from all (Misra &
Gries 1982; merging after Agarwal et al. 2012, "Mergeable summaries"). So of n ids noted, a count is
too low by n / (CAPACITY + 1) at most and never too high: every id that makes up more than 0.1 % of
the ids noted is there. Noting one in `EVERY` adds the error of a sample, √(p / n) for a share p.
Old counts fade: n is halved once it reaches `_MEMORY`.
"""

from __future__ import annotations

import threading

import numpy as np

from psrt.core.types import I64

EVERY = 61  # a prime near 64: batches often repeat after powers of two
CAPACITY = 1024
_NOTES = 4096
_MEMORY = 1 << 20


class HotIds:
    """Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._skipped = 0
        self._notes: I64 = np.empty(_NOTES, np.int64)
        self._noted = 0
        self._ids: I64 = np.empty(0, np.int64)
        self._counts: I64 = np.empty(0, np.int64)
        self._seen = 0

    def pulled(self, ids: I64) -> None:
        """`ids` (n,) were pulled. While another thread counts they are left out: it is a sample,
        and a pull need not wait for it."""
        if self._lock.acquire(blocking=False):
            try:
                self._note(ids)
            finally:
                self._lock.release()

    def top(self, most: int = 10) -> list[tuple[int, float]]:
        """The ids pulled most, each with the share of all pulls that it makes up at least."""
        with self._lock:
            self._count()
            first = np.argsort(-self._counts, kind="stable")[:most]
            shares = self._counts[first] / max(1, self._seen)
            return list(zip(self._ids[first].tolist(), shares.tolist(), strict=True))

    def _note(self, ids: I64) -> None:
        if self._skipped >= len(ids):  # as in most small pulls
            self._skipped -= len(ids)
            return
        sample = ids[self._skipped :: EVERY]
        self._skipped = (self._skipped - len(ids)) % EVERY
        while len(sample):
            taken = sample[: _NOTES - self._noted]
            self._notes[self._noted : self._noted + len(taken)] = taken
            self._noted += len(taken)
            sample = sample[len(taken) :]
            if self._noted == _NOTES:
                self._count()

    def _count(self) -> None:
        """Notes into the summary."""
        ids, places = np.unique(
            np.concatenate([self._ids, self._notes[: self._noted]]), return_inverse=True
        )
        weights = np.concatenate([self._counts, np.ones(self._noted, np.int64)])
        counts = np.bincount(places, weights, len(ids)).astype(np.int64)
        self._seen += self._noted
        self._noted = 0
        if len(ids) > CAPACITY:
            counts -= np.partition(counts, -CAPACITY - 1)[-CAPACITY - 1]
        if self._seen >= _MEMORY:
            counts //= 2
            self._seen //= 2
        self._ids, self._counts = ids[counts > 0], counts[counts > 0]
