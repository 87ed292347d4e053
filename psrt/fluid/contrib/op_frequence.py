"""Counts of the ops of a program."""

from __future__ import annotations

from collections import Counter
from typing import Any

from psrt.fluid.framework import FluidProgram


def op_freq_statistic(program: Any) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Return the number of ops of each type, and of each pair "a->b" of which b reads what a made.

    Both begin with the most frequent. Raises `TypeError` for what is no program.
    """
    if not isinstance(program, FluidProgram):
        raise TypeError(f"op_freq_statistic was given {type(program).__name__}, not a program.")
    types: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    writer: dict[str, str] = {}
    for op in program.graph.ops:
        types[op.type] += 1
        pairs.update(f"{writer[name]}->{op.type}" for name in op.reads() if name in writer)
        writer.update(dict.fromkeys(op.writes(), op.type))
    return types.most_common(), pairs.most_common()


__all__ = ["op_freq_statistic"]
