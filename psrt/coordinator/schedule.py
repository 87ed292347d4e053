"""Schedule: the times at which a cut is due."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CutSchedule:
    """A cut every `every_steps` steps or every `every_s` seconds, whichever comes first; 0 = never.

    Steps are rounds in Sync and mini-batches of all trainers in the other modes.
    """

    every_steps: int = 0
    every_s: float = 0.0

    @property
    def makes_cuts(self) -> bool:
        """False for a schedule by which no cut is ever due."""
        return self.every_steps > 0 or self.every_s > 0

    def is_due(self, steps: int, elapsed_s: float) -> bool:
        """Return True if a cut is due `steps` and `elapsed_s` seconds after the last began.

        Without a step since then nothing has changed, and no cut is due.
        """
        if steps <= 0:
            return False
        by_steps = bool(self.every_steps) and steps >= self.every_steps
        return by_steps or (self.every_s > 0 and elapsed_s >= self.every_s)
