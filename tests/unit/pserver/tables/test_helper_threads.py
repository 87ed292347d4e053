"""Idle threads help, busy ones are not waited for, and no task outlives its run."""

from __future__ import annotations

import contextlib
import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from psrt.core import specs
from psrt.pserver.serving.service import PserverService
from psrt.pserver.tables import helper_threads
from psrt.pserver.tables.helper_threads import NO_HELPERS, HelperThreads
from psrt.pserver.tables.sparse_table import LARGE_ROWS

WAIT_S = 30.0


class CallerError(Exception):
    """Raised by a task in the thread that runs it."""


class HelperError(Exception):
    """Raised by a task in another thread."""


@pytest.fixture
def helpers() -> Iterator[HelperThreads]:
    threads = HelperThreads(1)
    yield threads
    threads.close()


class Workers:
    """The threads that have done tasks."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []

    def task(self) -> None:
        self.threads.append(threading.current_thread())


def meeting(threads: int) -> Callable[[], Any]:
    """A task that blocks until `threads` threads run it."""
    return partial(threading.Barrier(threads).wait, WAIT_S)


def is_caller() -> bool:
    return threading.current_thread() is threading.main_thread()


def occupied(helpers: HelperThreads, gate: threading.Event) -> threading.Thread:
    """A caller that holds itself and one helper thread until the `gate` opens."""
    meet = threading.Barrier(3)

    def hold() -> None:
        meet.wait(WAIT_S)
        assert gate.wait(WAIT_S)

    caller = threading.Thread(target=helpers.run, args=([hold, hold],))
    caller.start()
    meet.wait(WAIT_S)
    return caller


class LateHelper:
    """A run that keeps the thread which helps with it until the `gate` opens."""

    def __init__(self, gate: threading.Event) -> None:
        self._gate = gate

    def begin(self) -> bool:
        assert self._gate.wait(WAIT_S)
        return False


def test_idle_threads_help_in_each_run(helpers: HelperThreads) -> None:
    for _ in range(20):
        helpers.run([meeting(2)] * 2)


def test_as_many_help_as_there_are() -> None:
    helpers = HelperThreads(3)

    helpers.run([meeting(4)] * 4)

    helpers.close()


def test_every_task_is_done_once(helpers: HelperThreads) -> None:
    done: list[int] = []

    helpers.run([partial(done.append, number) for number in range(500)])

    assert sorted(done) == list(range(500))


def test_no_task_and_one_task_need_no_help(helpers: HelperThreads) -> None:
    workers = Workers()

    helpers.run([])
    helpers.run([workers.task])

    assert workers.threads == [threading.current_thread()]
    assert not helpers._threads


def test_no_caller_waits_for_a_busy_thread(helpers: HelperThreads) -> None:
    gate, workers = threading.Event(), Workers()
    caller = occupied(helpers, gate)

    helpers.run([workers.task] * 10)

    assert workers.threads == [threading.current_thread()] * 10
    gate.set()
    caller.join(WAIT_S)
    helpers.run([meeting(2)] * 2)


def test_a_helper_that_has_not_begun_is_cancelled_and_not_awaited(helpers: HelperThreads) -> None:
    gate, workers = threading.Event(), Workers()
    helpers.run([meeting(2)] * 2)
    inbox: Any = helpers._inbox
    inbox.put(LateHelper(gate))  # idle to all appearances, but slow to come

    helpers.run([workers.task] * 10)

    assert workers.threads == [threading.current_thread()] * 10
    gate.set()
    helpers.run([meeting(2)] * 2)
    assert len(workers.threads) == 10


def test_an_error_of_the_caller_comes_after_tasks_that_have_begun_and_drops_the_others(
    helpers: HelperThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    meet, is_awaited, done = meeting(2), threading.Event(), list[str]()
    await_helpers = helper_threads._TaskGroup.await_helpers

    def awaiting(run: Any) -> None:
        is_awaited.set()
        await_helpers(run)

    def task() -> None:
        meet()
        if is_caller():
            raise CallerError
        assert is_awaited.wait(WAIT_S)
        done.append("begun")

    monkeypatch.setattr(helper_threads._TaskGroup, "await_helpers", awaiting)
    with pytest.raises(CallerError):
        helpers.run([task, task, partial(done.append, "not begun")])

    assert done == ["begun"]


def test_an_error_of_a_helper_drops_what_has_not_begun_and_is_raised(
    helpers: HelperThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    meet, is_through, done = meeting(2), threading.Event(), list[str]()
    end = helper_threads._TaskGroup.end

    def ending(run: Any) -> None:
        is_through.set()
        end(run)

    def task() -> None:
        meet()
        if not is_caller():
            raise HelperError
        assert is_through.wait(WAIT_S)
        done.append("begun")

    monkeypatch.setattr(helper_threads._TaskGroup, "end", ending)
    with pytest.raises(HelperError):
        helpers.run([task, task, partial(done.append, "not begun")])

    assert done == ["begun"]


def test_an_error_of_a_helper_keeps_nothing_of_its_frames_once_it_was_told(
    helpers: HelperThreads,
) -> None:
    meet, kept = meeting(2), list[weakref.ref[np.ndarray]]()

    def task() -> None:
        view = np.zeros(1)  # as of rows, which cannot grow while there is one
        meet()
        if not is_caller():
            kept.append(weakref.ref(view))
            raise HelperError

    gc.disable()
    try:
        with contextlib.suppress(HelperError):
            helpers.run([task, task])
        helpers.run([meeting(2)] * 2)  # the helper is through

        assert [view() for view in kept] == [None]
    finally:
        gc.enable()


def test_of_two_errors_the_callers_own_is_raised(helpers: HelperThreads) -> None:
    meet = meeting(2)

    def task() -> None:
        meet()
        raise CallerError if is_caller() else HelperError

    with pytest.raises(CallerError):
        helpers.run([task, task])

    helpers.run([meeting(2)] * 2)


def test_an_index_error_of_a_task_is_an_error(helpers: HelperThreads) -> None:
    with pytest.raises(IndexError):
        helpers.run([lambda: [].pop()])


@pytest.mark.parametrize("closed", [False, True], ids=["without threads", "closed"])
def test_who_has_no_threads_does_everything_alone(closed: bool) -> None:
    workers, helpers = Workers(), HelperThreads(2) if closed else NO_HELPERS
    if closed:
        helpers.run([meeting(3)] * 3)
        helpers.close()
        helpers.close()

    helpers.run([workers.task] * 5)

    assert workers.threads == [threading.current_thread()] * 5


def test_closing_ends_the_threads_after_tasks_that_have_begun(helpers: HelperThreads) -> None:
    gate, workers = threading.Event(), Workers()
    caller = occupied(helpers, gate)
    threads = list(helpers._threads)
    closing = threading.Thread(target=helpers.close)
    closing.start()
    while helpers._is_open:
        pass

    helpers.run([workers.task] * 5)

    assert workers.threads == [threading.current_thread()] * 5
    gate.set()
    closing.join(WAIT_S)
    caller.join(WAIT_S)
    assert len(threads) == 1
    assert not threads[0].is_alive()


def test_closing_beside_runs_loses_no_task() -> None:
    helpers, done, half_done = HelperThreads(2), list[int](), threading.Event()

    def run() -> None:
        for number in range(200):
            helpers.run([partial(done.append, number)] * 3)
            if number == 100:
                half_done.set()

    callers = [threading.Thread(target=run) for _ in range(4)]
    for caller in callers:
        caller.start()
    assert half_done.wait(WAIT_S)
    helpers.close()
    for caller in callers:
        caller.join(WAIT_S)

    assert sorted(done) == sorted(list(range(200)) * 12)


def test_a_pserver_ends_its_helper_threads() -> None:
    before = set(threading.enumerate())
    service = PserverService(stripes=2, wait_timeout_s=WAIT_S, helper_threads=1)
    rule = (specs.Constant(0.0), specs.Sgd(), specs.ConstantRate(0.1), 1)
    service.tables.register([specs.SparseTableSpec("t", 2, *rule)])
    table, ids = service.tables.sparse("t"), np.arange(LARGE_ROWS)

    table.read(table.route(ids), np.empty((LARGE_ROWS, 2), np.float32))
    begun = set(threading.enumerate()) - before
    service.stop()

    assert [thread.name for thread in begun] == ["helper_0"]
    assert not any(thread.is_alive() for thread in begun)


@pytest.mark.parametrize("begun", [0, 1], ids=["no thread", "one of two threads"])
def test_a_caller_without_threads_does_everything_alone_from_then_on(
    begun: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    helpers, done, start = HelperThreads(2), list[int](), threading.Thread.start
    started, is_refused = list[threading.Thread](), threading.Event()

    def start_some(thread: threading.Thread) -> None:
        if len(started) == begun:
            is_refused.set()
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    def task(number: int) -> None:
        assert is_refused.wait(WAIT_S)
        done.append(number)

    monkeypatch.setattr(threading.Thread, "start", start_some)
    for number in range(10):
        helpers.run([partial(task, number)] * 100)
    with pytest.raises(CallerError):
        helpers.run([raise_as_caller])
    helpers.close()

    assert sorted(done) == sorted([*range(10)] * 100)
    assert [record.message for record in caplog.records] == [
        "large requests get no help from other threads: can't start new thread"
    ]


def raise_as_caller() -> None:
    raise CallerError


def test_a_thread_that_ends_late_is_slept_for(
    helpers: HelperThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    meet, has_looked, done = meeting(2), threading.Event(), list[str]()

    def task() -> None:
        meet()
        if not is_caller():
            assert has_looked.wait(WAIT_S)
            done.append("late")

    monkeypatch.setattr(helper_threads, "await_change", lambda *_: has_looked.set())
    helpers.run([task, task])

    assert done == ["late"]
