"""The sum of one gradient over the replicas.

The memory of the first replica with examples receives the sum, always in the order of replicas, so
every run gives the same bits. The gradients are already weighted: each starts with the weight of
its replica's share.
"""

from __future__ import annotations

from collections.abc import Sequence

from psrt.executor.compute import part_of
from psrt.executor.memory import Cell
from psrt.kernels.ops import EagerBackend


class GradientSum:
    """The gradient of one parameter: replicas that `have` one are summed, `all` get the sum.

    Its parts are those of the update; of an `is_sparse` one they are whole rows.
    """

    def __init__(self, have: Sequence[Cell], all: Sequence[Cell], is_sparse: bool) -> None:
        self._first, self._added, self._all = have[0], have[1:], all
        self._is_sparse = is_sparse

    def record(self, commands: EagerBackend, number: int = 0, of: int = 1) -> None:
        """Record the sum, or part `number` of `of`."""
        total = self._first.value
        width = total.shape[1] if self._is_sparse else 1
        rows = part_of(total.size // width, number, of, width)
        if rows.start < rows.stop:
            here = slice(rows.start * width, rows.stop * width)
            for cell in self._added:
                commands.add(total.reshape(-1)[here], cell.value.reshape(-1)[here])

    def publish(self) -> None:
        """Set the gradient of all replicas to the sum, after every part."""
        for cell in self._all:
            cell.value = self._first.value
