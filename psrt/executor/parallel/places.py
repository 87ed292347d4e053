"""What the ops of replicas read and write, as places of the dependency graph.

A var belongs to its replica, except for what replicas share: parameters where there is one copy,
and what forward ops change in place (running statistics, counts of metrics), on which the replicas
therefore take turns, in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from psrt.executor.parallel.ssa import Place
from psrt.graph.program import Op, Program

SHARED = -1
ORDER = "program order"


class Places:
    """`one_copy` says that replicas share parameters; `buffers` names vars that share memory."""

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
    """Vars of the scope that ops other than updates write."""
    kinds = ("state", "parameter")
    writers: Iterable[Op] = (op for op in program.ops if op.role == "forward")
    return {n for op in writers for n in op.writes() if program.vars[n].kind in kinds}
