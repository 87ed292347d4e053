"""Nodes joined into chains: the same computations, the same parallelism, fewer nodes."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from psrt.executor.parallel.chains import chained
from psrt.executor.parallel.schedule import Schedule
from psrt.executor.parallel.ssa import SsaGraph, SsaNode


def node(label: str, reads: str = "", writes: str = "", replica: int = 0) -> SsaNode:
    return SsaNode(label, lambda: None, frozenset(reads), frozenset(writes), replica=replica)


def labels(graph: SsaGraph) -> list[str]:
    return ["".join(part.label for part in node.parts or (node,)) for node in graph.nodes]


def edges(graph: SsaGraph) -> set[tuple[str, str]]:
    names = labels(graph)
    pairs = enumerate(graph.successors)
    return {(names[at], names[to]) for at, successors in pairs for to in successors}


def test_what_runs_one_after_the_other_becomes_one_node():
    graph = chained(SsaGraph.of([node("A", "", "a"), node("B", "a", "b"), node("C", "b", "c")]))

    assert labels(graph) == ["ABC"]
    assert graph.waits == (0,)


def test_a_branch_and_a_meeting_stay():
    diamond = [node("A", "", "a"), node("B", "a", "b"), node("C", "a", "c"), node("D", "bc", "d")]

    graph = chained(SsaGraph.of(diamond))

    assert edges(graph) == {("A", "B"), ("A", "C"), ("B", "D"), ("C", "D")}
    assert graph.waits == (0, 1, 1, 2)


def test_an_edge_that_a_longer_path_stands_for_keeps_no_nodes_apart():
    """C reads what A wrote, but waits for B, which waits for A, anyway."""
    graph = chained(SsaGraph.of([node("A", "", "a"), node("B", "a", "b"), node("C", "ab", "c")]))

    assert labels(graph) == ["ABC"]


def test_replicas_are_not_joined():
    graph = chained(SsaGraph.of([node("A", "", "a"), node("B", "a", "b", replica=1)]))

    assert labels(graph) == ["A", "B"]
    assert edges(graph) == {("A", "B")}


def test_nodes_at_home_with_different_replicas_are_not_joined():
    away = SsaNode("B", lambda: None, frozenset("a"), frozenset("b"), home=1)

    graph = chained(SsaGraph.of([node("A", "", "a"), away]))

    assert labels(graph) == ["A", "B"]


def test_a_barrier_stays_a_node_of_its_own():
    barrier = SsaNode("|", lambda: None, barrier=True)

    graph = chained(SsaGraph.of([node("A", "", "a"), barrier, node("B", "b", "b")]))

    assert labels(graph) == ["A", "|", "B"]


def test_no_nodes_are_no_chains():
    assert chained(SsaGraph.of([])).nodes == ()


def _drawn(draw: random.Random, count: int) -> list[SsaNode]:
    def places() -> str:
        return "".join(draw.sample("abcdef", draw.randint(0, 2)))

    return [node(str(at), places(), places(), draw.randint(0, 1)) for at in range(count)]


@pytest.mark.parametrize("seed", range(30))
def test_what_one_node_waits_for_is_what_it_waited_for_before(seed: int):
    """Over random graphs: node by node, the set of all that runs before it, directly or not."""
    nodes = _drawn(random.Random(seed), 14)
    before = SsaGraph.of(nodes)
    after = chained(before)

    whole = _waited_for(before, lambda at: [before.nodes[at].label])
    joined = _waited_for(after, lambda at: [part.label for part in _parts(after.nodes[at])])

    for label, earlier in whole.items():
        assert earlier <= joined[label]
        assert joined[label] - earlier <= set(_chain_of(after, label)), "only of its own chain"


@pytest.mark.parametrize("seed", range(10))
def test_a_walk_runs_every_part_once_and_in_order(seed: int):
    nodes = _drawn(random.Random(seed), 14)
    graph = chained(SsaGraph.of(nodes))
    schedule, ran = Schedule(graph), []

    while (at := schedule.take()) is not None:
        ran += [part.label for part in _parts(graph.nodes[at])]
        schedule.done(at)

    assert schedule.is_over
    assert sorted(ran, key=int) == [node.label for node in nodes]


def _parts(node: SsaNode) -> tuple[SsaNode, ...]:
    return node.parts or (node,)


def _chain_of(graph: SsaGraph, label: str) -> list[str]:
    chains = ([part.label for part in _parts(node)] for node in graph.nodes)
    return next(chain for chain in chains if label in chain)


def _waited_for(graph: SsaGraph, labels_of: Callable[[int], list[str]]) -> dict[str, set[str]]:
    """For each label all labels that a walk must have run before it."""
    earlier: list[set[str]] = [set() for _ in graph.nodes]
    found: dict[str, set[str]] = {}
    for at, successors in enumerate(graph.successors):
        so_far = set(earlier[at])
        for label in labels_of(at):
            found[label] = set(so_far)
            so_far.add(label)
        for to in successors:
            earlier[to] |= so_far
    return found
