"""Lists that must have the same lengths, checked where they meet.

Vars computed from one ragged var have its very offsets, which is known when a program is compiled.
Others may differ from batch to batch, and kernels trust offsets: an op that reads two such lists
element by element is made to look first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psrt.core.errors import DataError
from psrt.executor.compute.registry import Step
from psrt.executor.memory import Cell


def checked(step: Step, ragged: Sequence[Cell]) -> Step:
    """`step`, after a look at the lists it reads where they may differ in length."""
    first, *others = ragged
    apart = [cell for cell in others if _source(cell) is not _source(first)]
    if not apart:
        return step

    def run() -> None:
        for cell in apart:
            if not np.array_equal(first.offsets, cell.offsets):  # type: ignore[arg-type]
                raise DataError(f"The lists of {first.name} and of {cell.name} differ in length.")
        step()

    return run


def _source(cell: Cell) -> Cell:
    """The cell whose offsets a cell has."""
    while cell.follows is not None:
        cell = cell.follows
    return cell
