"""The ids of a table that are pulled most (its heavy hitters), in a few KiB for any number of ids.

Every `EVERY`-th id pulled is sampled. Each full sample is counted into a summary of CAPACITY ids:
counts are added, and the largest count beyond the CAPACITY is subtracted from all (Misra & Gries
1982; summaries are combined after Agarwal et al. 2012, "Mergeable summaries"). So of n ids sampled,
a count is too low by n / (CAPACITY + 1) at most and never too high: every id that makes up more
than 0.1 % of the sampled ids is in the summary. Sampling one id in `EVERY` adds an error of √(p /
n) for a fraction p. Old counts fade: n is halved once it reaches `_MEMORY`.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from psrt.core.types import I64

EVERY = 61  # a prime near 64: batches often repeat after powers of two
CAPACITY = 1024
_SAMPLE = 4096
_MEMORY = 1 << 20


class HotIds:
    """Counts of sampled ids; any thread may call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._skipped = 0
        self._sample: I64 = np.empty(_SAMPLE, np.int64)
        self._sampled = 0
        self._ids: I64 = np.empty(0, np.int64)
        self._counts: I64 = np.empty(0, np.int64)
        self._seen = 0  # fades
        self._total = 0

    def count(self, ids: I64) -> None:
        """Count pulled `ids` (n,), unless another thread is counting: this is a sample only, and a
        pull need not wait for it."""
        if self._lock.acquire(blocking=False):
            try:
                self._add(ids)
            finally:
                self._lock.release()

    def top(self, most: int = 10) -> list[tuple[int, float]]:
        """The ids pulled most, each with a lower bound of its fraction of all pulls."""
        with self._lock:
            self._summarise()
            first = np.argsort(-self._counts, kind="stable")[:most]
            fractions = self._counts[first] / max(1, self._seen)
            return list(zip(self._ids[first].tolist(), fractions.tolist(), strict=True))

    def describe(self) -> dict[str, Any]:
        """Facts for STATUS: the ids pulled most, and how many were sampled in all."""
        return {"hot_ids": self.top(), "sampled_ids": self._total}

    def _add(self, ids: I64) -> None:
        if self._skipped >= len(ids):  # as in most small pulls
            self._skipped -= len(ids)
            return
        sample = ids[self._skipped :: EVERY]
        self._total += len(sample)
        self._skipped = (self._skipped - len(ids)) % EVERY
        while len(sample):
            taken = sample[: _SAMPLE - self._sampled]
            self._sample[self._sampled : self._sampled + len(taken)] = taken
            self._sampled += len(taken)
            sample = sample[len(taken) :]
            if self._sampled == _SAMPLE:
                self._summarise()

    def _summarise(self) -> None:
        """Count the sample into the summary."""
        ids, positions = np.unique(
            np.concatenate([self._ids, self._sample[: self._sampled]]), return_inverse=True
        )
        weights = np.concatenate([self._counts, np.ones(self._sampled, np.int64)])
        counts = np.bincount(positions, weights, len(ids)).astype(np.int64)
        self._seen += self._sampled
        self._sampled = 0
        if len(ids) > CAPACITY:
            counts -= np.partition(counts, -CAPACITY - 1)[-CAPACITY - 1]
        if self._seen >= _MEMORY:
            counts //= 2
            self._seen //= 2
        self._ids, self._counts = ids[counts > 0], counts[counts > 0]
