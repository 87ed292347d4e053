"""A trainer's decision to use the pserver of a part no longer, in this epoch and for good; pure.

A connection that is refused or closed is evidence that the process has ended; silence is weaker
evidence, and counts after a longer time. A reply in between ends the doubt.

    USED ──failures for long enough, or fenced──▶ DEPOSED ──served(epoch)──▶ USED in that epoch
      ▲──────────────withdrawn──────────────────────┘
"""

from __future__ import annotations

CLOSED_S = 0.2
"""Seconds of refused or closed connections after which a pserver is deposed."""

SILENT_S = 15.0
"""Seconds without any reply after which it is deposed, too."""


class Deposal:
    """The state of one part at one trainer. Once deposed, no call may reach that pserver."""

    def __init__(self, closed_s: float = CLOSED_S, silent_s: float = SILENT_S) -> None:
        self.epoch = 0
        self.is_deposed = False
        self._closed_s, self._silent_s = closed_s, silent_s
        self._closed_since: float | None = None
        self._failing_since: float | None = None

    def failed(self, now: float, is_closed: bool) -> None:
        """Record a call that got no reply; `is_closed` if its connection was refused or closed."""
        self._failing_since = now if self._failing_since is None else self._failing_since
        if not is_closed:
            self._closed_since = None
        elif self._closed_since is None:
            self._closed_since = now
        closed = self._closed_since is not None and now - self._closed_since >= self._closed_s
        self.is_deposed |= closed or now - self._failing_since >= self._silent_s

    def answered(self) -> None:
        """Record a reply."""
        self._closed_since = self._failing_since = None

    def fenced(self, epoch: int) -> None:
        """Record that the pserver of `epoch` is deposed by others, or refuses to serve."""
        self.is_deposed |= epoch == self.epoch

    def withdrawn(self) -> None:
        """Use the pserver again: no backup has a copy of the part, so none can replace it."""
        self.is_deposed = False
        self.answered()

    def served(self, epoch: int) -> bool:
        """Record that the part is served in `epoch`; False if this is known, or old."""
        if epoch <= self.epoch:
            return False
        self.epoch, self.is_deposed = epoch, False
        self.answered()
        return True
