"""Vars of numbers that the program has: ranges, diagonals, and sizes of other vars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from psrt.core.errors import ProgramError
from psrt.fluid.adapting.composed.calls import called
from psrt.fluid.names import Variable, dtype_name
from psrt.graph import layers as psrt_layers


def range(start: float, end: float, step: float, dtype: Any, name: str | None = None) -> Variable:
    """Numbers from `start` on by `step`, below `end`; all are numbers, not vars."""
    _need_numbers("range", start, end, step)
    return _constant(np.arange(start, end, step), dtype)


def linspace(
    start: float, stop: float, num: int, dtype: Any = "float32", name: str | None = None
) -> Variable:
    """`num` numbers from `start` to `stop` at equal distances; all are numbers, not vars."""
    _need_numbers("linspace", start, stop, num)
    return _constant(np.linspace(start, stop, num), dtype)


def diag(diagonal: Sequence[float]) -> Variable:
    """A square matrix float32 with these numbers on its diagonal, 0 elsewhere."""
    return _constant(np.diag(np.asarray(diagonal, np.float32)), "float32")


def eye(
    num_rows: int,
    num_columns: int | None = None,
    batch_shape: Sequence[int] | None = None,
    dtype: Any = "float32",
) -> Variable:
    """An identity matrix, for each index of `batch_shape` if given."""
    one = np.eye(num_rows, num_columns)
    return _constant(np.broadcast_to(one, (*(batch_shape or ()), *one.shape)), dtype)


def rank(input: Variable) -> Variable:
    """The number of dimensions, int64 (1,)."""
    return _constant(np.array([len(input.shape)]), "int64")


def _constant(values: Any, dtype: Any) -> Variable:
    return called(psrt_layers.constant, values.ravel().tolist(), values.shape, dtype_name(dtype))


def _need_numbers(layer: str, *given: object) -> None:
    if any(isinstance(each, Variable) for each in given):
        raise ProgramError(
            f"layers.{layer} was given a var where psrt takes a number.",
            hint="Its length is part of the program; feed what differs from run to run.",
        )


__all__ = ["diag", "eye", "linspace", "range", "rank"]
