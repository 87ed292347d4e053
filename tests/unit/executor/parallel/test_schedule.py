"""Assignment of the nodes of a graph to threads."""

from __future__ import annotations

from psrt.executor.parallel.schedule import Schedule
from psrt.executor.parallel.ssa import SsaGraph, SsaNode


def node(label: str, reads: str = "", writes: str = "", replica: int = 0, **more: int) -> SsaNode:
    return SsaNode(
        label, lambda: None, frozenset(reads), frozenset(writes), replica=replica, **more
    )


def schedule_of(*nodes: SsaNode) -> Schedule:
    return Schedule(SsaGraph.of(nodes))


def test_a_thread_stays_with_its_replica() -> None:
    schedule = schedule_of(
        *(node("A", "", "a"), node("B", "a", "b")), *(node("X", "", "x", 1), node("Y", "x", "y", 1))
    )

    first, second = schedule.take(), schedule.take()
    assert (first, second) == (0, 2)
    schedule.done(0)
    schedule.done(2)

    assert schedule.take(second) == 3
    assert schedule.take(first) == 1


def test_a_node_away_from_home_is_for_the_thread_of_its_home() -> None:
    schedule = schedule_of(
        *(node("A", "", "a"), node("X", "", "x", 1)),
        *(node("half", "ax", "1"), node("other half", "ax", "2", home=1)),
    )
    first, second = schedule.take(), schedule.take()
    schedule.done(0)
    schedule.done(1)

    assert schedule.take(second) == 3
    assert schedule.take(first) == 2


def test_a_thread_that_helped_another_comes_back_to_its_own_replica() -> None:
    schedule = schedule_of(
        *(node("A", "", "a"), node("numbers", "", "n")),
        *(node("X", "", "x", 1), node("Y", "xn", "y", 1), node("B", "an", "b")),
    )
    first, second = schedule.take(), schedule.take()
    assert (first, second) == (0, 2)
    schedule.done(second)
    helped = schedule.take(second)
    assert helped == 1, "nothing of its own is ready"
    schedule.done(first)
    schedule.done(helped)

    assert schedule.take(helped) == 3
    assert schedule.take(first) == 4
