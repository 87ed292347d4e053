"""Making one gradient of those of the replicas.

The memory of the first replica that has examples receives the sum, always in the order of replicas:
the same bits in every run, whichever replica was done first. The shares of the batch are already in
the gradients, each of which began with its replica's weight, so a sum is all there is to do.
"""

from __future__ import annotations

from collections.abc import Sequence

from psrt.executor.compute import part_of
from psrt.executor.memory import Cell
from psrt.kernels.ops import EagerBackend


class GradientSum:
    """The gradient of one parameter: some replicas `have` one, `all` of them get the sum.

    Parts of it are those of the update: of `is_sparse` whole rows.
    """

    def __init__(self, have: Sequence[Cell], all: Sequence[Cell], is_sparse: bool) -> None:
        self.cells = have
        self._first, self._added, self._told = have[0], have[1:], all
        self._is_sparse = is_sparse

    def note(self, tape: EagerBackend, number: int = 0, of: int = 1) -> None:
        """What a tape does for it, or for the `number`-th of `of` parts."""
        total = self._first.value
        width = total.shape[1] if self._is_sparse else 1
        rows = part_of(total.size // width, number, of, width)
        if rows.start < rows.stop:
            here = slice(rows.start * width, rows.stop * width)
            for cell in self._added:
                tape.add(total.reshape(-1)[here], cell.value.reshape(-1)[here])

    def tell(self) -> None:
        """Let all have it, once every part is done."""
        for cell in self._told:
            cell.value = self._first.value
