"""What trainers may still compute on: the dense values each of them pulled, for delay compensation.

Values are snapshots of the table, which never change and which all trainers that pulled a version
share, so T trainers keep at most as many copies as there are distinct versions among them. Pure
bookkeeping: the table calls it under its lock.
"""

from __future__ import annotations

from collections import deque

from psrt.core.types import F32

KEPT = 4
"""Versions kept of one trainer: those its gradients under way were computed on, and newer ones that
its receiver has pulled meanwhile. An older gradient counts as one of the oldest version kept."""


class PulledValues:
    """Of one dense table; versions of a trainer are kept in the order it pulled them."""

    def __init__(self) -> None:
        self._of_trainer: dict[int, deque[tuple[int, F32]]] = {}

    def pulled(self, trainer: int, version: int, values: F32) -> None:
        """`trainer` was sent `values` (size,), read-only."""
        kept = self._of_trainer.setdefault(trainer, deque(maxlen=KEPT))
        if not kept or kept[-1][0] < version:
            kept.append((version, values))

    def computed_on(self, trainer: int, version: int) -> F32 | None:
        """What `trainer` had of `version` when it computed a gradient; None if it pulled nothing.

        A trainer's gradients come in the order of their versions: what is older is let go of.
        """
        kept = self._of_trainer.get(trainer)
        if not kept:
            return None
        while len(kept) > 1 and kept[1][0] <= version:
            kept.popleft()
        return kept[0][1]

    def release(self, trainer: int) -> None:
        """`trainer` pushes nothing more."""
        self._of_trainer.pop(trainer, None)
