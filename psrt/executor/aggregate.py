"""Making one gradient of those of the replicas.

The memory of the first replica that has examples receives the sum, always in the order of replicas:
the same bits in every run, whichever replica was done first. The shares of the batch are already in
the gradients, each of which began with its replica's weight, so a sum is all there is to do.
"""

from __future__ import annotations

from collections.abc import Sequence

from psrt.executor.cells import Cell
from psrt.kernels.tape import AtOnce


class GradientSum:
    """The gradient of one parameter: some replicas `have` one, `all` of them get the sum."""

    def __init__(self, have: Sequence[Cell], all: Sequence[Cell]) -> None:
        self._first, self._added, self._told = have[0], have[1:], all

    def note(self, tape: AtOnce) -> None:
        """What a tape does for it."""
        total = self._first.value.reshape(-1)
        for cell in self._added:
            tape.add(total, cell.value.reshape(-1))
        for cell in self._told:
            cell.value = self._first.value
