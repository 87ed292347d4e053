"""The times of the local cuts of one pserver, and whether the next one is full; pure.

One is due every `every_s`, and soon after somebody has asked for one. When those behind the newest
full state have more bytes than it, the next one is full: it replaces them all. So disk space and
the time of a recovery are at most about twice those of one full state.
"""

from __future__ import annotations

LEAST_S = 0.1
"""Seconds between two local cuts, however often they are asked for."""

LEAST_BYTES = 64 << 20
"""Bytes of local cuts that are always kept behind a full state."""


class DeltaSchedule:
    """Local cuts every `every_s` seconds."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._last_s = self._due_s = 0.0
        self._is_asked = False
        self._full_bytes = self._bytes_behind = 0

    @property
    def needs_full(self) -> bool:
        """True if the next local cut replaces all before it."""
        return self._bytes_behind > max(LEAST_BYTES, self._full_bytes)

    def begin(self, now: float) -> None:
        """Let the first one be due at once."""
        self._last_s, self._due_s = now - LEAST_S, now

    def ask(self) -> None:
        """Let one be due as soon as possible."""
        self._is_asked = True

    def wait_s(self, now: float) -> float:
        """Seconds until one is due, 0 = now."""
        soon_s = self._last_s + LEAST_S
        return max(0.0, (min(soon_s, self._due_s) if self._is_asked else self._due_s) - now)

    def taken(self, now: float) -> None:
        """Record that one was taken, or could not be."""
        self._last_s, self._due_s, self._is_asked = now, now + self._every_s, False

    def written(self, size_bytes: int, is_full: bool) -> None:
        """Record that one is on disk."""
        if is_full:
            self._full_bytes, self._bytes_behind = size_bytes, 0
        else:
            self._bytes_behind += size_bytes

    def replaced(self) -> None:
        """Record that a complete cut has taken the place of those before."""
        self._bytes_behind = 0
