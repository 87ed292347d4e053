"""An estimate of the memory of a step."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from psrt.fluid.framework import FluidProgram


def memory_usage(program: Any, batch_size: int) -> tuple[float, float, str]:
    """Return the least and the most memory of what a step of `batch_size` computes, and their unit.

    The unit is B, KB or MB. Data and parameters do not count, and lists count one element an
    example. Raises `TypeError` for what is no program, `ValueError` for a size below 1.
    """
    if not isinstance(program, FluidProgram):
        raise TypeError(f"memory_usage was given {type(program).__name__}, not a program.")
    if batch_size <= 0:
        raise ValueError(f"memory_usage was given a batch of {batch_size} examples.")
    vars = program.graph.vars
    names = dict.fromkeys(name for op in program.graph.ops for name in op.writes())
    size, unit = float(sum(_bytes(vars[name], batch_size) for name in names)), "B"
    for larger in ("KB", "MB"):
        if size > 1024:
            size, unit = size / 1024, larger
    return size * 1.05, size * 1.1, unit  # 5 to 10 % more, as Fluid adds


def _bytes(var: Any, batch_size: int) -> int:
    sizes = [batch_size if size < 0 else size for size in var.shape]
    return math.prod(sizes) * int(np.dtype(var.dtype).itemsize)


__all__ = ["memory_usage"]
