"""Threads per pserver: parallel between pservers, in order at each, errors at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from psrt.communicator.requests import endpoint_threads
from psrt.communicator.requests.endpoint_threads import EndpointThreads, results
from psrt.core.errors import DeadlineError, InternalError
from psrt.core.threads import CrashReport

LONG_S = 30.0
NAMES = ("ps0", "ps1")


@pytest.fixture
def threads() -> Iterator[EndpointThreads]:
    threads = EndpointThreads(NAMES, "test", CrashReport())
    yield threads
    threads.close()


def test_jobs_of_different_pservers_run_at_the_same_time(threads: EndpointThreads) -> None:
    meeting = threading.Barrier(2, timeout=LONG_S)

    futures = [threads.submit(endpoint, meeting.wait) for endpoint in range(2)]

    assert sorted(results(futures, NAMES, "meeting", LONG_S)) == [0, 1]


def test_jobs_of_one_pserver_run_in_the_order_submitted(threads: EndpointThreads) -> None:
    seen: list[int] = []

    futures: list[Any] = [threads.submit(0, lambda i=i: seen.append(i)) for i in range(50)]
    results(futures, NAMES[:1] * 50, "appending", LONG_S)

    assert seen == list(range(50))


def test_several_threads_of_an_endpoint_run_as_many_jobs_at_the_same_time() -> None:
    threads, meeting = (
        EndpointThreads(NAMES, "test", CrashReport(), threads=3),
        threading.Barrier(3),
    )

    futures = [threads.submit(0, lambda: meeting.wait(LONG_S)) for _ in range(3)]

    assert sorted(future.result(LONG_S) for future in futures) == [0, 1, 2]
    threads.close()


def test_closing_ends_every_thread_of_every_endpoint() -> None:
    before = set(threading.enumerate())
    threads = EndpointThreads(NAMES, "test", CrashReport(), threads=2)
    started = set(threading.enumerate()) - before

    threads.close()

    for thread in started:
        thread.join(LONG_S)
    assert len(started) == 4
    assert not any(thread.is_alive() for thread in started)


def test_the_first_failure_is_raised_while_others_still_run(threads: EndpointThreads) -> None:
    gate = threading.Event()

    def fail() -> None:
        raise ValueError("boom")

    futures = [threads.submit(0, gate.wait), threads.submit(1, fail)]

    with pytest.raises(ValueError, match="boom"):
        results(futures, NAMES, "failing", LONG_S)
    gate.set()


def test_a_thread_serves_on_after_a_failure(threads: EndpointThreads) -> None:
    failed = threads.submit(0, lambda: 1 // 0)
    served = threads.submit(0, lambda: "served")

    assert served.result(LONG_S) == "served"
    assert isinstance(failed.exception(LONG_S), ZeroDivisionError)


def test_a_silent_pserver_is_named_at_the_deadline(
    threads: EndpointThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint_threads, "BACKSTOP_S", 0.0)
    gate = threading.Event()
    futures: list[Any] = [threads.submit(0, lambda: None), threads.submit(1, gate.wait)]
    futures[0].result(LONG_S)

    with pytest.raises(DeadlineError, match="PULL has no answer from ps1"):
        results(futures, NAMES, "PULL", 0.0)
    gate.set()


def test_closing_runs_what_was_submitted_before(threads: EndpointThreads) -> None:
    gate = threading.Event()
    first, second = threads.submit(0, lambda: gate.wait(LONG_S)), threads.submit(0, lambda: "ran")

    threads.close()
    gate.set()

    assert first.result(LONG_S)
    assert second.result(LONG_S) == "ran"


def test_a_job_after_closing_fails_instead_of_waiting(threads: EndpointThreads) -> None:
    threads.close()

    with pytest.raises(InternalError, match="after the threads ended"):
        threads.submit(0, lambda: None).result(LONG_S)
