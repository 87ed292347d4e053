"""From replicas to a graph: its ops, their order, and the nodes added to them.

    forward of each replica, alongside it the distinct ids of zero-copy tables
    backward of each replica · a sum for each gradient · [barrier] · clip and decay · optimize

Clipping, decay and updates run once with one copy of the parameters (Reduce), and in every replica
with several (AllReduce). Graphs depend on the replicas with examples, on the roles that run, and on
the zero-copy tables.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from psrt.executor.compute import in_sequence
from psrt.executor.parallel.chains import chained
from psrt.executor.parallel.gradient_sums import GradientSums
from psrt.executor.parallel.graphviz import draw
from psrt.executor.parallel.places import ORDER, Places
from psrt.executor.parallel.replicas import Replica
from psrt.executor.parallel.shares import BatchShare
from psrt.executor.parallel.split_updates import BEGUN, SplitUpdates
from psrt.executor.parallel.ssa import Place, SsaGraph, SsaNode, union
from psrt.executor.parallel.zero_copy import ZeroCopyTable
from psrt.executor.ports import GradSink
from psrt.executor.program import PreparedProgram, gradient_hooks
from psrt.executor.strategies import BuildStrategy
from psrt.graph.declaration import computed_rates
from psrt.graph.program import Role

Key: TypeAlias = tuple[tuple[int, ...], tuple[Role, ...], frozenset[str]]
"""Replicas that have examples, roles, zero-copy tables."""


class Planner:
    """Builds and caches the graphs of one parallel executor."""

    def __init__(
        self,
        prepared: PreparedProgram,
        replicas: Sequence[Replica],
        one_copy: bool,
        build: BuildStrategy,
        threads: int,
        sink: GradSink | None = None,
    ) -> None:
        program = prepared.program
        self._replicas, self._one_copy = replicas, one_copy
        self._places = Places(program, one_copy, prepared.memory.places)
        self._build, self._threads = build, threads
        self._parts = len(replicas) if one_copy and not build.enable_sequential_execution else 1
        rates = computed_rates(program).values()
        self._rates = self._places.of((rate.var for rate in rates), replica=0)
        self._sums = GradientSums(program, replicas, self._places)
        self._graphs: dict[Key, SsaGraph] = {}
        self.sink = sink

    def use_sink(self, sink: GradSink | None) -> None:
        """Offer gradients to another sink: graphs are made anew."""
        self.sink = sink
        self._graphs.clear()

    def graph(
        self,
        shares: Sequence[BatchShare],
        roles: Sequence[Role],
        zero_copy: Sequence[ZeroCopyTable] = (),
    ) -> SsaGraph:
        """The graph of a batch with these non-empty shares.

        The distinct ids of `zero_copy` tables are found before their gradients.
        """
        active = tuple(share.number for share in shares)
        key = (active, tuple(roles), frozenset(table.name for table in zero_copy))
        if key not in self._graphs:
            nodes = list(self._nodes(active, roles, zero_copy))
            if self.sink is not None and "optimize" not in roles:
                self._add_hooks(nodes, self.sink)
            graph = SsaGraph.of(nodes)
            if self._build.debug_graphviz_path:
                draw(graph, Path(self._build.debug_graphviz_path))
            self._graphs[key] = chained(graph)
        return self._graphs[key]

    def finish(self, shares: Sequence[BatchShare], roles: Sequence[Role]) -> None:
        """Publish gradient sums after a walk along that graph, if no node of it did."""
        active = [share.number for share in shares]
        if self._one_copy and "backward" in roles and self._ends(active, roles):
            self._sums.publish(active)

    def _nodes(
        self, active: Sequence[int], roles: Sequence[Role], zero_copy: Sequence[ZeroCopyTable]
    ) -> Iterator[SsaNode]:
        ends = self._ends(active, roles)
        if "forward" in roles:
            yield from self._pass("forward", active, ends)
        if "backward" not in roles:
            return
        for table in zero_copy:
            ids_found = frozenset([_distinct_ids_of(table.name)])
            find = partial(table.find_distinct_ids, active)
            yield SsaNode(f"distinct ids of {table.name}", find, writes=ids_found)
        updates = self._updates(roles)
        is_early = self._one_copy and len(self._replicas) > 1 and bool(ends)
        if is_early:
            known = self._rates | {_distinct_ids_of(table.name) for table in zero_copy}
            for each in updates:
                yield from each.begin_early(known)
        yield from self._pass("backward", active, ends)
        summed: list[frozenset[Place]] = []
        if len(self._replicas) == 1:
            yield from self._barrier(roles)
        elif ends:  # these are a barrier
            yield from self._sums.in_parts(active, ends | (BEGUN if is_early else frozenset()))
            summed = self._sums.parts(active)
            if not self._one_copy:
                yield self._sums.publishing(active)
        else:
            yield from self._sums.each(active)
            yield from self._barrier(roles)
        for replica in range(1 if self._one_copy or not updates else len(self._replicas)):
            yield from self._ops(replica, "clip_and_decay", after=union(summed))
        for each in updates:
            yield from each.whole(union(summed))
            if not is_early:
                yield from each.begin(self._sums.places() if summed else frozenset())
            yield from each.in_parts(summed)

    def _barrier(self, roles: Sequence[Role]) -> Iterator[SsaNode]:
        if "optimize" in roles and self._build.enable_backward_optimizer_op_deps:
            yield SsaNode("barrier", _nothing, barrier=True)

    def _pass(self, role: Role, active: Sequence[int], ends: frozenset[Place]) -> Iterator[SsaNode]:
        for replica in active:
            yield from self._ops(replica, role, ends)

    def _ends(self, active: Sequence[int], roles: Sequence[Role]) -> frozenset[Place]:
        """Places written last by forward and backward, if every thread has replicas of its own.

        Then ops of a replica run in program order, as few nodes, and sums wait for the end of all
        replicas. Empty if a sink is offered early gradients.
        """
        offers = self.sink is not None and "optimize" not in roles
        if len(active) % self._threads or offers:
            return frozenset()
        return frozenset((replica, ORDER) for replica in active)

    def _ops(
        self,
        replica: int,
        role: Role,
        ends: frozenset[Place] = frozenset(),
        after: frozenset[Place] = frozenset(),
    ) -> Iterator[SsaNode]:
        place: Place = (replica, ORDER)
        is_ordered = place in ends or self._build.enable_sequential_execution
        order = frozenset([place] if is_ordered else [])
        for op, step in self._replicas[replica].compiled.steps[role]:
            reads = self._places.of(op.reads(), replica) | after
            if role != "forward":
                reads |= {_distinct_ids_of(name) for name in op.reads()}
            writes = self._places.of(op.writes(), replica) | order
            yield SsaNode(str(op), step, reads, writes, op, replica)

    def _updates(self, roles: Sequence[Role]) -> list[SplitUpdates]:
        """The updates of each replica that updates, if any does."""
        if "optimize" not in roles:
            return []
        return [
            SplitUpdates(list(self._ops(at, "optimize")), replica.compiled.updates, self._parts)
            for at, replica in enumerate(self._replicas[: 1 if self._one_copy else None])
        ]

    def _add_hooks(self, nodes: list[SsaNode], sink: GradSink) -> None:
        """Append a hook to the last writer of each gradient of the first replica."""
        for name, hook in gradient_hooks(self._replicas[0].compiled, sink).items():
            place = self._places.of([name], replica=0)
            writers = [at for at, node in enumerate(nodes) if place <= node.writes]
            if writers:
                node = nodes[writers[-1]]
                nodes[writers[-1]] = dataclasses.replace(node, run=in_sequence([node.run, hook]))


def _distinct_ids_of(table: str) -> Place:
    """The place of the distinct ids of a table."""
    return ("distinct ids", table)


def _nothing() -> None:
    pass
