"""Dependencies among nodes that share places, and every walk along them."""

from __future__ import annotations

import itertools
import random

import pytest

from psrt.executor.parallel.schedule import Schedule
from psrt.executor.parallel.ssa import SsaGraph, SsaNode


def node(reads: str = "", writes: str = "", barrier: bool = False) -> SsaNode:
    label = f"{reads}->{writes}"
    return SsaNode(label, lambda: None, frozenset(reads), frozenset(writes), barrier=barrier)


def edges(graph: SsaGraph) -> set[tuple[int, int]]:
    return {(at, to) for at, successors in enumerate(graph.successors) for to in successors}


def test_a_reader_waits_for_the_writer_of_the_version_it_reads():
    graph = SsaGraph.of([node(writes="a"), node("a", "b"), node("a", "c"), node("bc", "d")])

    assert edges(graph) == {(0, 1), (0, 2), (1, 3), (2, 3)}


def test_a_writer_waits_for_the_readers_of_the_version_it_replaces():
    graph = SsaGraph.of([node(writes="a"), node("a", "b"), node(writes="a"), node("a", "c")])

    assert edges(graph) == {(0, 1), (0, 2), (1, 2), (2, 3)}


def test_nodes_that_only_read_do_not_wait_for_each_other():
    graph = SsaGraph.of([node("a", "b"), node("a", "c"), node("a", "d")])

    assert edges(graph) == set()


def test_nodes_that_change_a_place_take_turns_in_the_order_listed():
    graph = SsaGraph.of([node("a", "a"), node("a", "a"), node("a", "a")])

    assert edges(graph) == {(0, 1), (1, 2)}


def test_a_barrier_waits_for_all_before_it_and_all_after_wait_for_it():
    graph = SsaGraph.of(
        [
            node(writes="a"),
            node("a", "b"),
            node(writes="c"),
            node(barrier=True),
            node("a", "d"),
            node(writes="e"),
            node("d", "f"),
        ]
    )

    assert edges(graph) == {(0, 1), (1, 3), (2, 3), (3, 4), (3, 5), (4, 6)}


@pytest.mark.parametrize("seed", range(20))
def test_every_walk_reads_the_versions_that_the_list_reads(seed):
    """The oracle runs the list in order; walks run ready nodes in any order."""
    draw = random.Random(seed)
    nodes = [
        node("".join(draw.sample("abcde", 2)), draw.choice("abcde"), draw.random() < 0.1)
        for _ in range(30)
    ]
    graph = SsaGraph.of(nodes)

    def seen(order):
        version = dict.fromkeys("abcde", -1)
        found = {}
        for at in order:
            found[at] = tuple(version[place] for place in sorted(nodes[at].reads))
            version.update(dict.fromkeys(nodes[at].writes, at))
        return found, version

    expected = seen(range(len(nodes)))
    for _ in range(20):
        assert seen(_any_walk(graph, draw)) == expected


def _any_walk(graph: SsaGraph, draw: random.Random) -> list[int]:
    schedule, order, running = Schedule(graph), [], []
    while not schedule.is_over:
        while (at := schedule.take()) is not None:
            running.append(at)
        chosen = running.pop(draw.randrange(len(running)))
        order.append(chosen)
        schedule.done(chosen)
    return order


# --- the walk -------------------------------------------------------------------------------------


def diamond() -> SsaGraph:
    return SsaGraph.of([node(writes="a"), node("a", "b"), node("a", "c"), node("bc", "d")])


def test_a_node_is_ready_once_all_it_waits_for_are_done():
    schedule = Schedule(diamond())

    assert schedule.take() == 0
    assert schedule.take() is None
    schedule.done(0)
    assert {schedule.take(), schedule.take()} == {1, 2}
    schedule.done(2)
    assert schedule.take() is None
    schedule.done(1)
    assert schedule.take() == 3


def test_a_walk_is_over_when_all_nodes_are_done():
    schedule = Schedule(diamond())

    for _ in range(4):
        assert not schedule.is_over
        at = schedule.take()
        schedule.done(at)

    assert schedule.is_over


def test_after_a_failure_nothing_starts_and_the_first_error_wins():
    schedule = Schedule(diamond())
    schedule.take()
    schedule.done(0)
    one, other = schedule.take(), schedule.take()

    first = ValueError("first")
    schedule.failed(other, first)

    assert not schedule.is_over
    schedule.failed(one, ValueError("second"))
    assert schedule.is_over
    assert schedule.take() is None
    assert schedule.failure == (other, first)


def test_what_runs_at_the_time_of_a_failure_may_end_well():
    schedule = Schedule(diamond())
    schedule.take()
    schedule.done(0)
    one, other = schedule.take(), schedule.take()

    schedule.failed(one, ValueError())
    schedule.done(other)

    assert schedule.is_over
    assert schedule.ready == 0


def test_an_empty_graph_is_over_at_once():
    assert Schedule(SsaGraph.of([])).is_over


def test_a_thread_stays_with_its_replica_and_helps_another_from_the_end():
    own, other = ("0 first", "0 second"), ("1 first", "1 second", "1 third")
    nodes = [SsaNode(label, lambda: None, replica=int(label[0])) for label in (*own, *other)]
    schedule = Schedule(SsaGraph.of(nodes))

    mine, theirs = schedule.take(), schedule.take()
    schedule.done(mine)
    then = schedule.take(after=mine)
    schedule.done(then)
    helped = schedule.take(after=then)

    taken = [nodes[at].label for at in (mine, theirs, then, helped)]
    assert taken == ["0 first", "1 first", "0 second", "1 third"]


def test_all_interleavings_of_two_chains_keep_each_in_order():
    graph = SsaGraph.of([node("a", "a"), node("b", "b"), node("a", "a"), node("b", "b")])

    walks = {tuple(_any_walk(graph, random.Random(seed))) for seed in range(200)}

    assert walks == {
        w
        for w in itertools.permutations(range(4))
        if w.index(0) < w.index(2) and w.index(1) < w.index(3)
    }
