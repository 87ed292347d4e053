"""From replicas to a graph: which ops run, in which order they may, and what is added to them.

    numbering of ids, beside the forward
    forward and backward of each replica · a sum for each gradient · [barrier] · adjust · optimize

Adjusting and updating happens once with one copy of the parameters (Reduce), in every replica with
several (AllReduce). Graphs depend on how many replicas have examples, on the roles that run, and on
the tables that are read in place.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from psrt.executor.aggregate import GradientSum
from psrt.executor.announce import tellers
from psrt.executor.chains import chained
from psrt.executor.compute import Noted
from psrt.executor.drawing import draw
from psrt.executor.in_place import TableInPlace
from psrt.executor.places import ORDER, Places
from psrt.executor.ports import OnGradient
from psrt.executor.preparation import Prepared
from psrt.executor.replicas import PASSES, Replica
from psrt.executor.shares import Share
from psrt.executor.ssa import Graph, Node, Place
from psrt.executor.strategies import BuildStrategy
from psrt.executor.updates import RowUpdate, in_turn
from psrt.graph.program import Op, Program, Role, gradient_name
from psrt.kernels.tape import AtOnce, tapes_for

Key: TypeAlias = tuple[tuple[int, ...], tuple[Role, ...], frozenset[str]]
"""Replicas that have examples, roles, tables read in place."""

SMALL = 1 << 13  # numbers of a gradient that takes less to sum than a node takes by itself


class Planner:
    """Makes the graphs of one parallel executor, each once."""

    def __init__(
        self, prepared: Prepared, replicas: Sequence[Replica], one_copy: bool, build: BuildStrategy
    ) -> None:
        program = prepared.program
        self._replicas, self._one_copy = replicas, one_copy
        self._places = Places(program, one_copy, prepared.memory.places)
        self._build = build
        self._parts = len(replicas) if one_copy and not build.enable_sequential_execution else 1
        names = {p: gradient_name(p) for p in program.parameters}
        gradients = [name for name in names.values() if name in program.vars]
        self._summed_together = _together(program, gradients)
        self._graphs: dict[Key, Graph] = {}
        self._on_gradient: OnGradient | None = None

    @property
    def on_gradient(self) -> OnGradient | None:
        return self._on_gradient

    @on_gradient.setter
    def on_gradient(self, on_gradient: OnGradient | None) -> None:
        self._on_gradient = on_gradient
        self._graphs.clear()

    def graph(
        self, shares: Sequence[Share], roles: Sequence[Role], whole: Sequence[TableInPlace] = ()
    ) -> Graph:
        """For a batch of which these are the shares that hold examples.

        The ids of tables in `whole` are numbered before their gradients.
        """
        active = tuple(share.number for share in shares)
        key = (active, tuple(roles), frozenset(table.name for table in whole))
        if key not in self._graphs:
            nodes = list(self._nodes(active, roles, whole))
            if self._on_gradient is not None:
                self._tell(nodes, self._on_gradient)
            graph = Graph.of(nodes)
            if self._build.debug_graphviz_path:
                draw(graph, Path(self._build.debug_graphviz_path))
            self._graphs[key] = chained(graph)
        return self._graphs[key]

    def _nodes(
        self, active: Sequence[int], roles: Sequence[Role], whole: Sequence[TableInPlace]
    ) -> Iterator[Node]:
        if "backward" in roles:
            for table in whole:
                numbers = frozenset([_numbers_of(table.name)])
                yield Node(f"distinct ids of {table.name}", table.number, writes=numbers)
        for role in PASSES:
            if role in roles:
                for replica in active:
                    yield from self._ops(replica, role)
        if "backward" not in roles:
            return
        if len(self._replicas) > 1:
            yield from (self._sum(names, active) for names in self._summed_together)
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
            if role != "forward":
                reads |= {_numbers_of(name) for name in op.reads()}
            writes = self._places.of(op.writes(), replica) | order
            node = Node(str(op), step, reads, writes, op, replica)
            yield from self._cut(node, op)

    def _cut(self, node: Node, op: Op) -> Iterator[Node]:
        """The update of a sparse table, often the last node of a step, in parts for all threads.

        They only read what the first one wrote, so nothing but the first orders them.
        """
        names = op.inputs.get("parameter", ()) if op.role == "optimize" else ()
        update = (
            self._replicas[node.replica].compiled.updates[names[0]] if len(names) == 1 else None
        )
        if self._parts == 1 or not isinstance(update, RowUpdate) or not update.may_be_cut:
            yield node
            return
        yield dataclasses.replace(node, run=update.begin)
        for number in range(self._parts):
            run = partial(update.part, number, self._parts)
            part = frozenset([("part", number, names[0])])
            yield dataclasses.replace(node, run=run, reads=node.reads | node.writes, writes=part)

    def _tell(self, nodes: list[Node], on_gradient: OnGradient) -> None:
        """Let the last writer of each gradient of the first replica, who hands them out, tell."""
        for name, tell in tellers(self._replicas[0].compiled, on_gradient).items():
            place = self._places.of([name], replica=0)
            writers = [at for at, node in enumerate(nodes) if place <= node.writes]
            if writers:
                node = nodes[writers[-1]]
                nodes[writers[-1]] = dataclasses.replace(node, run=in_turn([node.run, tell]))

    def _sum(self, names: Sequence[str], active: Sequence[int]) -> Node:
        """The sums of some gradients, as one node."""
        sums, everywhere = [], set[Place]()
        for name in names:
            cells = [replica.compiled.cells[name] for replica in self._replicas]
            sums.append(GradientSum([cells[replica] for replica in active], cells))
            everywhere.update(*(self._places.of([name], r) for r in range(len(cells))))

        def note(tape: AtOnce) -> None:
            for each in sums:
                each.note(tape)

        run = Noted(note, tapes_for(self._replicas[0].compiled.dtype))
        kind = "sum of gradient" if len(names) == 1 else "sums of gradients"
        label = f"{kind} {', '.join(names)}"
        return Node(label, run, frozenset(everywhere), frozenset(everywhere))


def _together(program: Program, gradients: Sequence[str]) -> list[list[str]]:
    """Gradients to sum as one node: a large one alone, all small ones together."""
    sizes = {name: math.prod(program.vars[name].shape) for name in gradients}
    small = [name for name in gradients if sizes[name] < SMALL]
    return [[name] for name in gradients if sizes[name] >= SMALL] + ([small] if small else [])


def _numbers_of(table: str) -> Place:
    """Where the distinct ids of a table stand."""
    return ("distinct ids", table)


def _nothing() -> None:
    pass
