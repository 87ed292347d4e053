"""Fewer hand-overs: nodes between which nothing else could run become one node.

Between two nodes a thread asks for the next one, under a lock and with the interpreter's. That is
lost time where the answer is known: if only B waits for A, and B for nobody else, B runs right
after A in any walk that loses nothing. So the graph keeps its parallelism and its results. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from psrt.executor.parallel.ssa import SsaGraph, SsaNode


def chained(graph: SsaGraph) -> SsaGraph:
    """The same computations; a node of several has them in `parts`, in their order.

    Nodes of different replicas stay apart: threads stay with a replica.
    """
    successors = _without_detours(graph.successors)
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
    apart = nodes[at].barrier or nodes[to].barrier
    is_one = nodes[at].replica == nodes[to].replica and nodes[at].place == nodes[to].place
    return is_one and not apart


def _without_detours(successors: Sequence[Sequence[int]]) -> list[list[int]]:
    """Only those edges that no longer path stands for; successors are listed behind their node.

    `behind[i]` is the set of all nodes that wait for node i, as the bits of a number.
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
