"""Updates cut in parts for all threads: often the last nodes of a step, when others have no work.

First every update begins, then each thread makes its part of all of them. Parts only read what
beginning wrote, so nothing else orders them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from psrt.executor.parts import SMALL
from psrt.executor.ssa import Node, Place, union
from psrt.executor.updates import Update, in_turn

_BEGUN: frozenset[Place] = frozenset(["updates have begun"])


def cut(
    nodes: Sequence[Node],
    updates: Mapping[str, Update],
    parts: int,
    summed: Sequence[frozenset[Place]],
    late: frozenset[Place],
    ends: frozenset[Place],
) -> Iterator[Node]:
    """The same `nodes`, all of update ops; those that are worth it in `parts`.

    Part p of all of them is at home with replica p, and of the sums of gradients needs `summed[p]`
    alone, if these have as many parts. To begin an update does not need what is in `late`, but
    waits for `ends`.
    """
    all_summed = union(summed)
    cuttable = {}
    for at, node in enumerate(nodes):
        of_node = _updates_of(node, updates)
        if parts > 1 and all(each.may_be_cut for each in of_node) and _is_large(of_node):
            cuttable[at] = of_node
        else:
            yield dataclasses.replace(node, reads=node.reads | all_summed)
    for at, of_node in cuttable.items():
        begin = in_turn([update.begin for update in of_node])
        reads, writes = nodes[at].reads - late | ends, nodes[at].writes | _BEGUN
        yield dataclasses.replace(nodes[at], run=begin, reads=reads, writes=writes)
    for number in range(parts):
        for at, of_node in cuttable.items():
            run = in_turn([partial(update.part, number, parts) for update in of_node])
            own = summed[number] if len(summed) == parts else all_summed
            reads = nodes[at].reads | own | nodes[at].writes | _BEGUN
            part = frozenset([("part of updates", number)])
            yield dataclasses.replace(nodes[at], run=run, reads=reads, writes=part, home=number)


def _updates_of(node: Node, updates: Mapping[str, Update]) -> list[Update]:
    assert node.op is not None, node.label
    return [updates[name] for name in node.op.inputs["parameter"]]


def _is_large(updates: Sequence[Update]) -> bool:
    shapes = [update.parameter.shape for update in updates]
    return sum(math.prod(shape) for shape in shapes) >= SMALL
