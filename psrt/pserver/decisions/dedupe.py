"""Deduplication of pushes by trainer, incarnation and sequence.

Sequences start at 1 and may arrive out of order, since a trainer pushes over several connections.
Gaps close, so one number and a small set represent all of them. Pure bookkeeping; called under the
lock of `PserverState`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

MOST_BEYOND = 1 << 16
"""Pushes of one trainer behind a gap. A gap this old comes from a refused push: no caller waits so
long. Its number is given up, so that memory stays bounded."""


class SeenSequences:
    """The sequences seen: all up to `complete_to`, given-up ones included, and those in `beyond`.

    `beyond` holds at most `MOST_BEYOND` sequences, all larger than `complete_to` + 1.
    """

    def __init__(self, complete_to: int = 0, beyond: Iterable[int] = ()) -> None:
        self.complete_to = complete_to
        self.beyond = set(beyond)

    def add(self, sequence: int) -> bool:
        """Return True if `sequence` is new."""
        if sequence <= self.complete_to or sequence in self.beyond:
            return False
        self.beyond.add(sequence)
        if len(self.beyond) > MOST_BEYOND:
            self.complete_to = min(self.beyond) - 1
        while self.complete_to + 1 in self.beyond:
            self.complete_to += 1
            self.beyond.remove(self.complete_to)
        return True


class AdmittedPushes:
    """The pushes of every trainer's current incarnation; `count` has those of former ones, too.

    Restored ones do not count.
    """

    def __init__(self) -> None:
        self.count = 0
        self._seen: dict[int, tuple[int, SeenSequences]] = {}

    def admit(self, trainer: int, incarnation: int, sequence: int) -> bool:
        """Return True exactly once for each push key."""
        current, seen = self._seen.get(trainer, (0, SeenSequences()))
        if current != incarnation:  # former incarnations are refused by the membership
            seen = SeenSequences()
        self._seen[trainer] = (incarnation, seen)
        is_new = seen.add(sequence)
        self.count += is_new
        return is_new

    def prefixes(self) -> dict[int, tuple[int, int]]:
        """Incarnation of each trainer, and the last of its pushes that has no gap before it."""
        return {
            trainer: (incarnation, seen.complete_to)
            for trainer, (incarnation, seen) in self._seen.items()
        }

    def dump(self) -> list[list[Any]]:
        """Trainer, incarnation, `complete_to` and `beyond` of each trainer, as JSON."""
        return [
            [trainer, incarnation, seen.complete_to, sorted(seen.beyond)]
            for trainer, (incarnation, seen) in sorted(self._seen.items())
        ]

    def restore(self, records: Iterable[list[Any]]) -> None:
        """Continue with records of `dump`."""
        for trainer, incarnation, complete_to, beyond in records:
            self._seen[trainer] = (incarnation, SeenSequences(complete_to, beyond))
