"""Vars, shared parameters and buffers of replicas as places of the dependency graph.

A var belongs to its replica, except those that replicas share: parameters with one copy, and vars
that forward ops change in place (running statistics, state of metrics). Replicas access these one
at a time, in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from psrt.executor.parallel.ssa import Place
from psrt.graph.program import Op, Program

SHARED = -1
ORDER = "program order"


class Places:
    """`one_copy` is whether replicas share parameters; `buffers` maps vars that share memory."""

    def __init__(self, program: Program, one_copy: bool, buffers: Mapping[str, int]) -> None:
        self._buffers = buffers
        self._shared = changed_in_place(program)
        if one_copy:
            self._shared |= program.parameters.keys()

    def of(self, names: Iterable[str], replica: int) -> frozenset[Place]:
        return frozenset(self._place(name, replica) for name in names)

    def _place(self, name: str, replica: int) -> Place:
        if name in self._shared:
            return (SHARED, name)
        return (replica, self._buffers.get(name, name))


def changed_in_place(program: Program) -> set[str]:
    """Vars of the scope that forward ops write."""
    kinds = ("state", "parameter")
    writers: Iterable[Op] = (op for op in program.ops if op.role == "forward")
    return {n for op in writers for n in op.writes() if program.vars[n].kind in kinds}
