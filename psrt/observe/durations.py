"""Histograms of durations by name, counted by each thread for itself: no lock, no lost count."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field

BOUNDS_S = (
    *(50e-6, 100e-6, 200e-6, 400e-6, 800e-6, 1.6e-3, 3.2e-3, 6.4e-3, 12.8e-3, 25.6e-3),
    *(51.2e-3, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0),
)
"""Upper bounds of buckets, in seconds: a pull of a local pserver takes 0.1 to 1 ms."""


@dataclass
class Histogram:
    """Numbers of durations by bucket, the last one beyond all bounds, and their sum."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    sum_s: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.sum_s += seconds

    def merge(self, other: Histogram) -> None:
        self.counts = [a + b for a, b in zip(self.counts, other.counts, strict=True)]
        self.sum_s += other.sum_s


class Durations:
    """Histograms by name; the caller bounds the names."""

    def __init__(self) -> None:
        self._of_thread = threading.local()
        self._lock = threading.Lock()  # guards both below
        self._running: list[tuple[threading.Thread, dict[str, Histogram]]] = []
        self._ended: dict[str, Histogram] = {}

    def add(self, name: str, seconds: float) -> None:
        """Count one duration."""
        try:
            own = self._of_thread.histograms
        except AttributeError:
            own = self._of_thread.histograms = self._begin()
        found = own.get(name)
        if found is None:
            found = own[name] = Histogram()
        found.add(seconds)

    def totals(self) -> dict[str, Histogram]:
        """Sums over all threads, by name."""
        with self._lock:
            found: dict[str, Histogram] = {}
            for each in [self._ended, *(own for _, own in self._running)]:
                _merge(found, each)
            return found

    def _begin(self) -> dict[str, Histogram]:
        """New counts of the calling thread; those of ended threads are merged."""
        own: dict[str, Histogram] = {}
        with self._lock:
            known, self._running = self._running, [(threading.current_thread(), own)]
            for thread, histograms in known:
                if thread.is_alive():
                    self._running.append((thread, histograms))
                else:
                    _merge(self._ended, histograms)
        return own


def _merge(into: dict[str, Histogram], more: Mapping[str, Histogram]) -> None:
    for name, histogram in list(more.items()):
        into.setdefault(name, Histogram()).merge(histogram)
