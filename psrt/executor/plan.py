"""From replicas to a graph: which ops run, in which order they may, and what is added to them.

    forward and backward of each replica · a sum for each gradient · [barrier] · adjust · optimize

Adjusting and updating happens once with one copy of the parameters (Reduce), in every replica with
several (AllReduce). Graphs depend on how many replicas have examples, and on the roles that run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from psrt.executor.aggregate import GradientSum
from psrt.executor.drawing import draw
from psrt.executor.places import ORDER, Places
from psrt.executor.preparation import Prepared
from psrt.executor.replicas import PASSES, Replica
from psrt.executor.shares import Share
from psrt.executor.ssa import Graph, Node
from psrt.executor.strategies import BuildStrategy
from psrt.graph.program import Role, gradient_name


class Planner:
    """Makes the graphs of one parallel executor, each once."""

    def __init__(
        self, prepared: Prepared, replicas: Sequence[Replica], one_copy: bool, build: BuildStrategy
    ) -> None:
        program = prepared.program
        self._replicas, self._one_copy = replicas, one_copy
        self._places = Places(program, one_copy, prepared.memory.places)
        self._build = build
        names = {p: gradient_name(p) for p in program.parameters}
        self._gradients = [name for name in names.values() if name in program.vars]
        self._graphs: dict[tuple[tuple[int, ...], tuple[Role, ...]], Graph] = {}

    def graph(self, shares: Sequence[Share], roles: Sequence[Role]) -> Graph:
        """For a batch of which these are the shares that hold examples."""
        active = tuple(share.number for share in shares)
        key = (active, tuple(roles))
        if key not in self._graphs:
            self._graphs[key] = graph = Graph.of(list(self._nodes(active, roles)))
            if self._build.debug_graphviz_path:
                draw(graph, Path(self._build.debug_graphviz_path))
        return self._graphs[key]

    def _nodes(self, active: Sequence[int], roles: Sequence[Role]) -> Iterator[Node]:
        for role in PASSES:
            if role in roles:
                for replica in active:
                    yield from self._ops(replica, role)
        if "backward" not in roles:
            return
        if len(self._replicas) > 1:
            yield from (self._sum(name, active) for name in self._gradients)
        updating = range(len(self._replicas))
        if self._one_copy or "optimize" not in roles:
            updating = range(1)
        if "optimize" in roles and self._build.enable_backward_optimizer_op_deps:
            yield Node("barrier", _nothing, barrier=True)
        for role in ("adjust", "optimize"):
            if role == "adjust" or role in roles:
                for replica in updating:
                    yield from self._ops(replica, role)

    def _ops(self, replica: int, role: Role) -> Iterator[Node]:
        order = {(replica, ORDER)} if self._build.enable_sequential_execution else frozenset()
        for op, step in self._replicas[replica].compiled.steps[role]:
            reads = self._places.of(op.reads(), replica)
            writes = self._places.of(op.writes(), replica) | order
            yield Node(str(op), step, reads, writes, op, replica)

    def _sum(self, name: str, active: Sequence[int]) -> Node:
        cells = [replica.compiled.cells[name] for replica in self._replicas]
        everywhere = frozenset(
            place for r in range(len(cells)) for place in self._places.of([name], r)
        )
        total = GradientSum([cells[replica] for replica in active], cells)
        return Node(f"sum of gradient {name}", total.run, everywhere, everywhere)


def _nothing() -> None:
    pass
