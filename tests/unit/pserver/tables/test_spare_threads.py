"""Idle threads help, busy ones are not waited for, and no job outlives its run."""

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
from psrt.pserver.tables import spare_threads
from psrt.pserver.tables.spare_threads import ALONE, SpareThreads
from psrt.pserver.tables.sparse_table import LARGE_ROWS

WAIT_S = 30.0


class CallerError(Exception):
    """Raised by a job in the thread that runs it."""


class HelperError(Exception):
    """Raised by a job in another thread."""


@pytest.fixture
def spare() -> Iterator[SpareThreads]:
    threads = SpareThreads(1)
    yield threads
    threads.close()


class Notes:
    """The threads that have done jobs."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []

    def job(self) -> None:
        self.threads.append(threading.current_thread())


def meeting(threads: int) -> Callable[[], Any]:
    """A job that so many threads must be at together."""
    return partial(threading.Barrier(threads).wait, WAIT_S)


def is_caller() -> bool:
    return threading.current_thread() is threading.main_thread()


def occupied(spare: SpareThreads, gate: threading.Event) -> threading.Thread:
    """A caller that holds itself and one spare thread until the `gate` opens."""
    meet = threading.Barrier(3)

    def hold() -> None:
        meet.wait(WAIT_S)
        assert gate.wait(WAIT_S)

    caller = threading.Thread(target=spare.run, args=([hold, hold],))
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


def test_idle_threads_help_in_each_run(spare: SpareThreads) -> None:
    for _ in range(20):
        spare.run([meeting(2)] * 2)


def test_as_many_help_as_there_are() -> None:
    spare = SpareThreads(3)

    spare.run([meeting(4)] * 4)

    spare.close()


def test_every_job_is_done_once_whoever_does_it(spare: SpareThreads) -> None:
    done: list[int] = []

    spare.run([partial(done.append, number) for number in range(500)])

    assert sorted(done) == list(range(500))


def test_no_job_and_one_job_need_no_help(spare: SpareThreads) -> None:
    notes = Notes()

    spare.run([])
    spare.run([notes.job])

    assert notes.threads == [threading.current_thread()]
    assert not spare._threads


def test_nobody_waits_for_a_busy_thread(spare: SpareThreads) -> None:
    gate, notes = threading.Event(), Notes()
    caller = occupied(spare, gate)

    spare.run([notes.job] * 10)

    assert notes.threads == [threading.current_thread()] * 10
    gate.set()
    caller.join(WAIT_S)
    spare.run([meeting(2)] * 2)


def test_a_helper_that_has_not_begun_is_cancelled_and_not_awaited(spare: SpareThreads) -> None:
    gate, notes = threading.Event(), Notes()
    spare.run([meeting(2)] * 2)
    inbox: Any = spare._inbox
    inbox.put(LateHelper(gate))  # idle to all appearances, but slow to come

    spare.run([notes.job] * 10)

    assert notes.threads == [threading.current_thread()] * 10
    gate.set()
    spare.run([meeting(2)] * 2)
    assert len(notes.threads) == 10


def test_an_error_of_the_caller_comes_after_jobs_that_have_begun_and_drops_the_others(
    spare: SpareThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    meet, is_awaited, done = meeting(2), threading.Event(), list[str]()
    await_helpers = spare_threads._SharedJob.await_helpers

    def awaiting(run: Any) -> None:
        is_awaited.set()
        await_helpers(run)

    def job() -> None:
        meet()
        if is_caller():
            raise CallerError
        assert is_awaited.wait(WAIT_S)
        done.append("begun")

    monkeypatch.setattr(spare_threads._SharedJob, "await_helpers", awaiting)
    with pytest.raises(CallerError):
        spare.run([job, job, partial(done.append, "not begun")])

    assert done == ["begun"]


def test_an_error_of_a_helper_drops_what_has_not_begun_and_is_raised(
    spare: SpareThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    meet, is_through, done = meeting(2), threading.Event(), list[str]()
    end = spare_threads._SharedJob.end

    def ending(run: Any) -> None:
        is_through.set()
        end(run)

    def job() -> None:
        meet()
        if not is_caller():
            raise HelperError
        assert is_through.wait(WAIT_S)
        done.append("begun")

    monkeypatch.setattr(spare_threads._SharedJob, "end", ending)
    with pytest.raises(HelperError):
        spare.run([job, job, partial(done.append, "not begun")])

    assert done == ["begun"]


def test_an_error_of_a_helper_keeps_nothing_of_its_frames_once_it_was_told(
    spare: SpareThreads,
) -> None:
    meet, kept = meeting(2), list[weakref.ref[np.ndarray]]()

    def job() -> None:
        view = np.zeros(1)  # as of rows, which cannot grow while there is one
        meet()
        if not is_caller():
            kept.append(weakref.ref(view))
            raise HelperError

    gc.disable()
    try:
        with contextlib.suppress(HelperError):
            spare.run([job, job])
        spare.run([meeting(2)] * 2)  # the helper is through

        assert [view() for view in kept] == [None]
    finally:
        gc.enable()


def test_of_two_errors_the_callers_own_is_raised(spare: SpareThreads) -> None:
    meet = meeting(2)

    def job() -> None:
        meet()
        raise CallerError if is_caller() else HelperError

    with pytest.raises(CallerError):
        spare.run([job, job])

    spare.run([meeting(2)] * 2)


def test_an_index_error_of_a_job_is_an_error(spare: SpareThreads) -> None:
    with pytest.raises(IndexError):
        spare.run([lambda: [].pop()])


@pytest.mark.parametrize("closed", [False, True], ids=["without threads", "closed"])
def test_who_has_no_threads_does_everything_alone(closed: bool) -> None:
    notes, spare = Notes(), SpareThreads(2) if closed else ALONE
    if closed:
        spare.run([meeting(3)] * 3)
        spare.close()
        spare.close()

    spare.run([notes.job] * 5)

    assert notes.threads == [threading.current_thread()] * 5


def test_closing_ends_the_threads_after_jobs_that_have_begun(spare: SpareThreads) -> None:
    gate, notes = threading.Event(), Notes()
    caller = occupied(spare, gate)
    threads = list(spare._threads)
    closing = threading.Thread(target=spare.close)
    closing.start()
    while spare._is_open:
        pass

    spare.run([notes.job] * 5)

    assert notes.threads == [threading.current_thread()] * 5
    gate.set()
    closing.join(WAIT_S)
    caller.join(WAIT_S)
    assert len(threads) == 1
    assert not threads[0].is_alive()


def test_closing_beside_runs_loses_no_job() -> None:
    spare, done, half_done = SpareThreads(2), list[int](), threading.Event()

    def run() -> None:
        for number in range(200):
            spare.run([partial(done.append, number)] * 3)
            if number == 100:
                half_done.set()

    callers = [threading.Thread(target=run) for _ in range(4)]
    for caller in callers:
        caller.start()
    assert half_done.wait(WAIT_S)
    spare.close()
    for caller in callers:
        caller.join(WAIT_S)

    assert sorted(done) == sorted(list(range(200)) * 12)


def test_a_pserver_ends_its_spare_threads() -> None:
    before = set(threading.enumerate())
    service = PserverService(stripes=2, wait_timeout_s=WAIT_S, spare_threads=1)
    rule = (specs.Constant(0.0), specs.Sgd(), specs.ConstantRate(0.1), 1)
    service.tables.register([specs.SparseTableSpec("t", 2, *rule)])
    table, ids = service.tables.sparse("t"), np.arange(LARGE_ROWS)

    table.read(table.route(ids), np.empty((LARGE_ROWS, 2), np.float32))
    begun = set(threading.enumerate()) - before
    service.stop()

    assert [thread.name for thread in begun] == ["spare_0"]
    assert not any(thread.is_alive() for thread in begun)


@pytest.mark.parametrize("begun", [0, 1], ids=["no thread", "one of two threads"])
def test_who_finds_no_thread_does_everything_alone_from_then_on(
    begun: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    spare, done, start = SpareThreads(2), list[int](), threading.Thread.start
    started, is_refused = list[threading.Thread](), threading.Event()

    def start_some(thread: threading.Thread) -> None:
        if len(started) == begun:
            is_refused.set()
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    def job(number: int) -> None:
        assert is_refused.wait(WAIT_S)
        done.append(number)

    monkeypatch.setattr(threading.Thread, "start", start_some)
    for number in range(10):
        spare.run([partial(job, number)] * 100)
    with pytest.raises(CallerError):
        spare.run([raise_as_caller])
    spare.close()

    assert sorted(done) == sorted([*range(10)] * 100)
    assert [record.message for record in caplog.records] == [
        "large requests get no more help of other threads: can't start new thread"
    ]


def raise_as_caller() -> None:
    raise CallerError


def test_a_thread_that_ends_late_is_slept_for(
    spare: SpareThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    meet, has_looked, done = meeting(2), threading.Event(), list[str]()

    def job() -> None:
        meet()
        if not is_caller():
            assert has_looked.wait(WAIT_S)
            done.append("late")

    monkeypatch.setattr(spare_threads, "await_change", lambda *_: has_looked.set())
    spare.run([job, job])

    assert done == ["late"]
