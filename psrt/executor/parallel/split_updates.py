"""Optimizer updates split into parts for all threads, as they are often the last nodes.

First every update begins, then each thread runs its part of all of them. Parts only depend on the
beginnings.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from psrt.executor.compute import SMALL, Update, in_sequence
from psrt.executor.parallel.ssa import Place, SsaNode, union

BEGUN: frozenset[Place] = frozenset(["updates have begun"])


class SplitUpdates:
    """The `nodes` of all update ops; large ones are split into `parts`."""

    def __init__(self, nodes: Sequence[SsaNode], updates: Mapping[str, Update], parts: int) -> None:
        self._nodes, self._parts = nodes, parts
        self._split: dict[int, list[Update]] = {}
        for at, node in enumerate(nodes):
            of_node = _updates_of(node, updates)
            if parts > 1 and all(each.may_be_split for each in of_node) and _is_large(of_node):
                self._split[at] = of_node

    def begin_early(self, known: frozenset[Place]) -> Iterator[SsaNode]:
        """Yield one node that begins all split updates and waits only for `known` places.

        Parts that wait for sums need no more: the sums wait for every reader of a parameter.
        """
        if self._split:
            run = in_sequence([update.begin for each in self._split.values() for update in each])
            reads = union(self._nodes[at].reads for at in self._split) & known
            yield SsaNode("beginning of updates", run, reads, BEGUN)

    def begin(self, late: frozenset[Place]) -> Iterator[SsaNode]:
        """Yield the beginnings, after the last readers of the parameters; none waits for `late`."""
        for at, of_node in self._split.items():
            run = in_sequence([update.begin for update in of_node])
            node = self._nodes[at]
            reads, writes = node.reads - late, node.writes | BEGUN
            yield dataclasses.replace(node, run=run, reads=reads, writes=writes)

    def whole(self, summed: frozenset[Place]) -> Iterator[SsaNode]:
        """Yield the nodes that are not split, which wait for all `summed` places."""
        for at, node in enumerate(self._nodes):
            if at not in self._split:
                yield dataclasses.replace(node, reads=node.reads | summed)

    def in_parts(self, summed: Sequence[frozenset[Place]]) -> Iterator[SsaNode]:
        """Yield the parts of split updates: part p of all has replica p as its home.

        It waits only for `summed[p]` of the gradient sums, if these have equally many parts.
        """
        for number in range(self._parts):
            own = summed[number] if len(summed) == self._parts else union(summed)
            for at, of_node in self._split.items():
                run = in_sequence([partial(update.part, number, self._parts) for update in of_node])
                node = self._nodes[at]
                reads = node.reads | own | node.writes | BEGUN
                part = frozenset([("part of updates", number)])
                yield dataclasses.replace(node, run=run, reads=reads, writes=part, home=number)


def _updates_of(node: SsaNode, updates: Mapping[str, Update]) -> list[Update]:
    assert node.op is not None, node.label
    return [updates[name] for name in node.op.inputs["parameter"]]


def _is_large(updates: Sequence[Update]) -> bool:
    shapes = [update.parameter.shape for update in updates]
    return sum(math.prod(shape) for shape in shapes) >= SMALL
