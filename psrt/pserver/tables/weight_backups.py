"""Backups of the dense values that each trainer pulled, for delay compensation.

They are the w_bak of DC-ASGD (Zheng et al. 2017). Backups are snapshots of the table, which never
change and which all trainers that pulled a version share. So T trainers keep at most as many copies
as they have distinct versions. Pure bookkeeping; the table calls it under its lock.
"""

from __future__ import annotations

from collections import deque

from psrt.core.types import F32

KEPT = 4
"""Versions kept per trainer: those that its gradients under way were computed on, and newer ones
that it has pulled meanwhile. An older gradient counts as one of the oldest version kept."""


class WeightBackups:
    """Backups of one dense table by trainer, in the order of its pulls."""

    def __init__(self) -> None:
        self._of_trainer: dict[int, deque[tuple[int, F32]]] = {}

    def keep(self, trainer: int, version: int, values: F32) -> None:
        """Keep the read-only `values` (size,) that `trainer` pulled."""
        kept = self._of_trainer.setdefault(trainer, deque(maxlen=KEPT))
        if not kept or kept[-1][0] < version:
            kept.append((version, values))

    def computed_on(self, trainer: int, version: int) -> F32 | None:
        """The values (size,) for a gradient of `version`; None if `trainer` pulled nothing.

        Drops older backups, since a trainer's gradients come in the order of their versions.
        """
        kept = self._of_trainer.get(trainer)
        if not kept:
            return None
        while len(kept) > 1 and kept[1][0] <= version:
            kept.popleft()
        return kept[0][1]

    def release(self, trainer: int) -> None:
        """Drop the backups of `trainer`, which has completed."""
        self._of_trainer.pop(trainer, None)
