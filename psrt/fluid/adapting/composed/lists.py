"""Rows in lists of other lengths."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from psrt.fluid.adapting.composed.calls import called
from psrt.fluid.names import Variable
from psrt.graph import layers as psrt_layers


def lod_reset(
    x: Variable, y: Variable | None = None, target_lod: Sequence[int] | None = None
) -> Variable:
    """Put the rows of `x` into lists of other lengths: those of `y`, or that `target_lod` has.

    Lists begin at the numbers of `target_lod`, or of an integer `y` without lists, which begin with
    0; a `target_lod` that does not holds their lengths. Raises `ValueError` without both.
    """
    if y is not None:
        flat = y if y.var.ragged or len(y.var.shape) == 1 else _flat(y)
        return called(psrt_layers.sequence_regroup, x, flat)
    if target_lod is None:
        raise ValueError("y and target_lod should not be both none.")
    numbers = [int(number) for number in target_lod]
    offsets = numbers if numbers[:1] == [0] else [0, *itertools.accumulate(numbers)]
    return called(psrt_layers.sequence_regroup, x, None, offsets)


def _flat(x: Variable) -> Variable:
    return called(psrt_layers.reshape, x, [-1])


__all__ = ["lod_reset"]
