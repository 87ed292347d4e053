"""The threads that walk graphs: staged with gates, never with sleeps."""

from __future__ import annotations

import threading

import pytest

from psrt.executor.parallel.schedule import Schedule
from psrt.executor.parallel.ssa import SsaGraph, SsaNode
from psrt.executor.parallel.workers import Workers

DEADLINE_S = 10.0


def chain(length: int) -> SsaGraph:
    place = frozenset("a")
    return SsaGraph.of([SsaNode(str(at), lambda: None, place, place) for at in range(length)])


def apart(count: int) -> SsaGraph:
    return SsaGraph.of([SsaNode(str(at), lambda: None) for at in range(count)])


@pytest.fixture
def workers():
    made: list[Workers] = []

    def make(threads: int) -> Workers:
        made.append(Workers(threads))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_node_runs_once_and_in_order(workers, threads):
    ran: list[int] = []

    workers(threads).walk(Schedule(chain(50)), ran.append)

    assert ran == list(range(50))


def test_independent_nodes_run_at_the_same_time(workers):
    together = threading.Barrier(3, timeout=DEADLINE_S)

    schedule = Schedule(apart(3))
    workers(3).walk(schedule, lambda _: together.wait())

    assert schedule.failure is None


def test_one_thread_runs_everything_in_the_thread_that_asked(workers):
    names = set()

    workers(1).walk(Schedule(apart(4)), lambda _: names.add(threading.current_thread().name))

    assert names == {threading.current_thread().name}


def test_a_failure_ends_the_walk_once_running_nodes_have_ended(workers):
    started, release = threading.Event(), threading.Event()
    ended: list[int] = []

    def execute(node: int) -> None:
        if node == 0:
            started.wait(DEADLINE_S)
            release.set()
            raise ValueError("broken")
        started.set()
        release.wait(DEADLINE_S)
        ended.append(node)

    schedule = Schedule(apart(2))
    workers(2).walk(schedule, execute)

    assert ended == [1]
    assert schedule.failure is not None
    assert str(schedule.failure[1]) == "broken"


def test_a_pool_walks_again_after_a_failure(workers):
    pool = workers(2)
    pool.walk(Schedule(chain(3)), lambda _: 1 / 0)
    ran: list[int] = []

    pool.walk(Schedule(chain(3)), ran.append)

    assert ran == [0, 1, 2]


def test_a_closed_pool_has_no_threads_left():
    pool = Workers(4, name="closing")
    own = [thread for thread in threading.enumerate() if thread.name.startswith("closing-")]
    assert len(own) == 3

    pool.close()

    for thread in own:
        thread.join(DEADLINE_S)
    assert not any(thread.is_alive() for thread in own)
