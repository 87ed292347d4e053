"""Updates cut in parts for all threads: often the last nodes of a step, when others have no work.

First every update begins, then each thread makes its part of all of them. Parts only read what
beginning wrote, so nothing else orders them.
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
    """The `nodes` of all update ops, of which those that are worth it come in `parts`."""

    def __init__(self, nodes: Sequence[SsaNode], updates: Mapping[str, Update], parts: int) -> None:
        self._nodes, self._parts = nodes, parts
        self._cut: dict[int, list[Update]] = {}
        for at, node in enumerate(nodes):
            of_node = _updates_of(node, updates)
            if parts > 1 and all(each.may_be_cut for each in of_node) and _is_large(of_node):
                self._cut[at] = of_node

    def begin_early(self, known: frozenset[Place]) -> Iterator[SsaNode]:
        """The beginning of all that is cut, needing nothing but what stands in `known`: for
        parts that wait for sums, which wait for everybody who reads a parameter."""
        if self._cut:
            run = in_sequence([update.begin for each in self._cut.values() for update in each])
            reads = union(self._nodes[at].reads for at in self._cut) & known
            yield SsaNode("beginning of updates", run, reads, BEGUN)

    def begin(self, late: frozenset[Place]) -> Iterator[SsaNode]:
        """The beginnings, each once nobody reads the parameter any more; what is in `late` it does
        not need."""
        for at, of_node in self._cut.items():
            run = in_sequence([update.begin for update in of_node])
            node = self._nodes[at]
            reads, writes = node.reads - late, node.writes | BEGUN
            yield dataclasses.replace(node, run=run, reads=reads, writes=writes)

    def whole(self, summed: frozenset[Place]) -> Iterator[SsaNode]:
        """The nodes that are not cut, once all is `summed`."""
        for at, node in enumerate(self._nodes):
            if at not in self._cut:
                yield dataclasses.replace(node, reads=node.reads | summed)

    def in_parts(self, summed: Sequence[frozenset[Place]]) -> Iterator[SsaNode]:
        """Parts of the others: part p of all of them is at home with replica p, and of the sums of
        gradients needs `summed[p]` alone, if these have as many parts."""
        for number in range(self._parts):
            own = summed[number] if len(summed) == self._parts else union(summed)
            for at, of_node in self._cut.items():
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
