"""Which pushes of a trainer's process were admitted already.

A push is named by (trainer, incarnation, sequence). Sequences start at 1 and may arrive out of
order, since a trainer pushes over several connections, but gaps close; so one number and a small
set remember all of them. Pure; called under the machine's lock.
"""

from __future__ import annotations

MOST_BEYOND = 1 << 16
"""Pushes of one trainer behind a gap. A gap this old was left by a push that was refused: no caller
waits so long, so its number is given up, and memory stays bounded."""


class SeenSequences:
    """All sequences up to `complete_to` were seen or given up, and those in `beyond` (all larger
    + 1), at most `MOST_BEYOND`."""

    def __init__(self) -> None:
        self.complete_to = 0
        self.beyond: set[int] = set()

    def add(self, sequence: int) -> bool:
        """True if `sequence` is new."""
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
    """The pushes of every trainer's current incarnation."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, SeenSequences]] = {}

    def admit(self, trainer: int, incarnation: int, sequence: int) -> bool:
        """True exactly once for each push key."""
        known, seen = self._seen.get(trainer, (0, SeenSequences()))
        if known != incarnation:  # former incarnations are refused by the membership
            seen = SeenSequences()
        self._seen[trainer] = (incarnation, seen)
        return seen.add(sequence)
