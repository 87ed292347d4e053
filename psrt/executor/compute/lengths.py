"""Length checks of ragged vars that one op reads element by element.

Vars computed from one ragged var share its offsets, which is known when a program is compiled.
Others may differ from batch to batch, and kernels trust offsets: an op that reads two of them
checks them first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psrt.core.errors import DataError
from psrt.executor.compute.registry import Step
from psrt.executor.memory import Cell


def checked(step: Step, ragged: Sequence[Cell]) -> Step:
    """`step`, preceded by a length check of the ragged vars whose offsets are not shared."""
    first, *others = ragged
    unshared = [cell for cell in others if _source(cell) is not _source(first)]
    if not unshared:
        return step

    def run() -> None:
        for cell in unshared:
            if not np.array_equal(first.offsets, cell.offsets):  # type: ignore[arg-type]
                raise DataError(f"The lists of {first.name} and of {cell.name} differ in length.")
        step()

    return run


def check_one_each(x: Cell) -> int:
    """Return the number of examples; raises `DataError` unless each has one element."""
    offsets = x.offsets
    assert offsets is not None, x.name
    count = len(offsets) - 1
    if offsets[-1] != count or not bool((offsets[1:] - offsets[:-1] == 1).all()):
        sizes = np.diff(offsets)
        wrong = int(np.flatnonzero(sizes != 1)[0])
        raise DataError(
            f"Example {wrong} of {x.name} has {sizes[wrong]} elements; an op that reads it "
            "beside values of whole examples needs one of each example.",
            hint="Pool the elements first: sequence_pool.",
        )
    return count


def _source(cell: Cell) -> Cell:
    """The cell that owns the offsets of a cell."""
    while cell.follows is not None:
        cell = cell.follows
    return cell
