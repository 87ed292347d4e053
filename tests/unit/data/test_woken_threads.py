"""Wake-ups of threads at a queue, and the time that closing waits for them."""

from __future__ import annotations

import threading

import pytest

from psrt.core.errors import DeadlineError
from psrt.core.threads import CrashReport, join_threads, start_thread
from psrt.data.reading.queue import BoundedQueue

WAIT_S = 10.0


def test_a_producer_that_found_the_queue_full_goes_on_when_half_is_taken():
    items: BoundedQueue[int] = BoundedQueue(4, 1)
    put: list[int] = []

    def produce() -> None:
        for i in range(10):
            items.put(i)
            put.append(i)
        items.producer_done()

    thread = start_thread(produce, "producer", CrashReport())

    taken = [items.get(WAIT_S) for _ in range(10)]

    join_threads([thread], WAIT_S, str)
    assert taken == put == list(range(10))
    assert items.get(WAIT_S) is None


def test_closing_wakes_a_producer_that_waits_for_room():
    items: BoundedQueue[int] = BoundedQueue(1, 1)
    items.put(0)
    told: list[bool] = []
    thread = start_thread(lambda: told.append(items.put(1)), "producer", CrashReport())

    items.close()

    join_threads([thread], WAIT_S, str)
    assert told == [False]


def test_a_thread_that_does_not_end_is_named_with_what_it_reads():
    gate = threading.Event()
    thread = start_thread(lambda: gate.wait(WAIT_S) and None, "reader-3", CrashReport())

    with pytest.raises(DeadlineError, match=r"reader-3 did not end within 0 s.*reading part-7"):
        join_threads([thread], 0, {"reader-3": "part-7"}.get)

    gate.set()
    join_threads([thread], WAIT_S, str)
