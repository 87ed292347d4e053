"""Merging nodes between which nothing else could run.

Between two nodes a thread fetches the next one, under a lock and with the interpreter's. That is
unnecessary if only B waits for A, and B for no other node: B can always run right after A. The
graph keeps its parallelism and its results. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from psrt.executor.parallel.ssa import SsaGraph, SsaNode


def chained(graph: SsaGraph) -> SsaGraph:
    """The graph with chains merged; a merged node has its nodes in `parts`, in order.

    Nodes of different replicas are not merged, because threads stay with a replica.
    """
    successors = _transitive_reduction(graph.successors)
    waits = [0] * len(successors)
    for to in (to for each in successors for to in each):
        waits[to] += 1
    follower = {
        at: each[0]
        for at, each in enumerate(successors)
        if len(each) == 1 and waits[each[0]] == 1 and _may_join(graph.nodes, at, each[0])
    }
    chains = list(_chains(len(successors), follower))
    number = {chain[0]: at for at, chain in enumerate(chains)}
    return SsaGraph(
        tuple(_joined([graph.nodes[at] for at in chain]) for chain in chains),
        tuple(tuple(sorted(number[to] for to in successors[chain[-1]])) for chain in chains),
        tuple(waits[chain[0]] for chain in chains),
    )


def _may_join(nodes: Sequence[SsaNode], at: int, to: int) -> bool:
    is_barrier = nodes[at].barrier or nodes[to].barrier
    is_one = nodes[at].replica == nodes[to].replica and nodes[at].place == nodes[to].place
    return is_one and not is_barrier


def _transitive_reduction(successors: Sequence[Sequence[int]]) -> list[list[int]]:
    """Transitive reduction; successors have higher numbers than their node.

    `behind[i]` is the set of all nodes that wait for node i, as the bits of an integer.
    """
    behind, kept = [0] * len(successors), [list[int]() for _ in successors]
    for at in reversed(range(len(successors))):
        for to in sorted(successors[at]):
            if not behind[at] >> to & 1:
                kept[at].append(to)
                behind[at] |= 1 << to | behind[to]
    return kept


def _chains(count: int, follower: dict[int, int]) -> Iterator[list[int]]:
    """Each node in one chain, chains in the order of their first nodes."""
    inner = set(follower.values())
    for first in range(count):
        if first not in inner:
            chain = [first]
            while chain[-1] in follower:
                chain.append(follower[chain[-1]])
            yield chain


def _joined(parts: Sequence[SsaNode]) -> SsaNode:
    first = parts[0]
    if len(parts) == 1:
        return first

    def run() -> None:
        for part in parts:
            part.run()

    return SsaNode(
        f"{first.label} to {parts[-1].label}",
        run,
        frozenset().union(*(part.reads for part in parts)),
        frozenset().union(*(part.writes for part in parts)),
        replica=first.replica,
        home=first.home,
        parts=tuple(parts),
    )
