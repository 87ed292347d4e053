"""The pace of parts and local cuts: how fast frozen tables are written while trainers push."""

from __future__ import annotations

from collections.abc import Sequence

from psrt.core.clock import Clock
from psrt.pserver.checkpoints.part_writer import Frozen
from psrt.storage.pacing import RateLimit, WritePace

MOST_BUFFERED = 64 << 20
"""Bytes of copies of changed rows; with more of them there are no waits, as they take memory."""


class PartPaces:
    """The waits of one writing thread, part after part; any thread may `hurry` them.

    `bytes_per_s` is the limit, 0 = none.
    """

    def __init__(self, bytes_per_s: float, clock: Clock) -> None:
        self._bytes_per_s, self._clock = bytes_per_s, clock
        self._now = WritePace(clock)
        self._hurried_until_s = clock.now()

    def expect(self, is_paced: bool = True) -> WritePace:
        """The pace of a part that is about to be written; without `is_paced` it never waits."""
        self._now = WritePace(self._clock)
        if not (is_paced and self._bytes_per_s) or self._clock.now() < self._hurried_until_s:
            self._now.hurry()
        return self._now

    def begin(self, pace: WritePace, tables: Sequence[Frozen], within_s: float) -> None:
        """Keep to the limit, or to what writes `tables` in `within_s`; by the writing thread."""

        def is_pressed() -> bool:
            return sum(each.buffered_bytes for each in tables) > MOST_BUFFERED

        if self._bytes_per_s:
            size_bytes = sum(each.size_bytes for each in tables)
            pace.begin(RateLimit(self._bytes_per_s, size_bytes, within_s), is_pressed)

    def hurry(self, for_s: float = 0.0) -> None:
        """Write the part under way, and those that begin within `for_s`, without waits."""
        if for_s:
            self._hurried_until_s = self._clock.now() + for_s
        self._now.hurry()
