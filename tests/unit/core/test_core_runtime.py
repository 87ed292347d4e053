"""The small things of core that every daemon stands on: clock, metrics, threads, tensors, log."""

from __future__ import annotations

import io
import logging
import os
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from psrt.core import log
from psrt.core.clock import MonotonicClock
from psrt.core.counters import Counters
from psrt.core.errors import InternalError
from psrt.core.tensors import Ragged, SelectedRows
from psrt.core.threads import CrashReport, schedule, start_thread, start_timer
from tests.support.clock import ManualClock

JOIN_S = 30.0

# --- clock ----------------------------------------------------------------------------------------


def test_a_manual_clock_moves_only_when_told_and_never_back() -> None:
    clock = ManualClock(5.0)
    clock.advance(2.5)

    assert clock.now() == 7.5
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(-1.0)


def test_the_monotonic_clock_never_goes_back() -> None:
    clock = MonotonicClock()
    readings = [clock.now() for _ in range(100)]

    assert readings == sorted(readings)


# --- counters -------------------------------------------------------------------------------------


def test_one_name_gives_one_counter() -> None:
    counters = Counters()

    counters.counter("pushes", "Pushes applied.").add(2)
    counters.counter("pushes", "Pushes applied.").add(3)

    assert counters.snapshot() == {"pushes": 5.0}


def test_a_timer_counts_events_also_of_blocks_that_raise() -> None:
    counters = Counters()
    timer = counters.timer("apply_seconds", "Time in kernels.")

    with pytest.raises(KeyError), timer.time():
        raise KeyError

    assert counters.snapshot()["apply_seconds_events"] == 1.0
    assert counters.snapshot()["apply_seconds"] >= 0.0


def test_one_name_cannot_be_two_kinds_of_counter() -> None:
    counters = Counters()
    counters.counter("rows", "Rows.")

    with pytest.raises(ValueError, match="rows is a counter, not a timer"):
        counters.timer("rows", "Rows.")


def test_increments_of_several_threads_are_all_counted() -> None:
    counter = Counters().counter("pushes", "Pushes.")
    crashes = CrashReport()

    def work() -> None:
        for _ in range(1000):
            counter.add()

    threads = [start_thread(work, f"adder-{i}", crashes) for i in range(4)]
    for thread in threads:
        thread.join(JOIN_S)

    assert counter.value == 4000


# --- threads --------------------------------------------------------------------------------------


@pytest.fixture
def quiet() -> Iterator[None]:
    """Crashes are logged with their traceback; keep that out of the test output."""
    logging.getLogger("psrt.threads").setLevel(logging.CRITICAL)
    yield
    logging.getLogger("psrt.threads").setLevel(logging.NOTSET)


def crash(error: BaseException, crashes: CrashReport, name: str = "sender") -> None:
    def target() -> None:
        raise error

    start_thread(target, name, crashes).join(JOIN_S)


@pytest.mark.usefixtures("quiet")
def test_a_crash_of_a_thread_is_raised_where_somebody_waits() -> None:
    crashes = CrashReport()
    crashes.check()

    crash(KeyError("w"), crashes)

    with pytest.raises(InternalError, match="background thread sender crashed"):
        crashes.check()


@pytest.mark.usefixtures("quiet")
def test_only_the_first_crash_of_a_group_is_kept_and_called_back() -> None:
    called: list[BaseException] = []
    crashes = CrashReport(on_crash=called.append)
    first, second = KeyError("first"), KeyError("second")

    crash(first, crashes, "one")
    crash(second, crashes, "two")

    assert called == [first]
    assert crashes.thread_name == "one"


def test_a_thread_carries_its_name_for_logs_and_debuggers() -> None:
    seen: list[str] = []

    thread = start_thread(
        lambda: seen.append(threading.current_thread().name), "recv", CrashReport()
    )
    thread.join(JOIN_S)

    assert seen == ["recv"]


@pytest.mark.usefixtures("quiet")
def test_a_timer_that_crashes_is_reported() -> None:
    crashed = threading.Event()
    crashes = CrashReport(on_crash=lambda _: crashed.set())

    def target() -> None:
        raise KeyError("w")

    start_timer(0.0, target, "late", crashes)

    assert crashed.wait(JOIN_S)
    assert crashes.thread_name == "late"


def test_a_timer_that_is_cancelled_ends_without_running() -> None:
    crashes, called = CrashReport(), list[str]()
    before = set(threading.enumerate())

    cancelled = start_timer(JOIN_S, lambda: called.append("late"), "late", crashes)
    (thread,) = set(threading.enumerate()) - before
    cancelled.set()
    thread.join(JOIN_S / 2)

    assert not thread.is_alive()
    assert called == []


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="a policy of Linux")
@pytest.mark.parametrize(
    ("policy", "number"), [("normal", "SCHED_OTHER"), ("batch", "SCHED_BATCH")]
)
def test_a_thread_and_those_it_starts_are_scheduled_alike(policy: str, number: str) -> None:
    found, crashes = list[int](), CrashReport()

    def look() -> None:
        found.append(os.sched_getscheduler(0))

    def work() -> None:
        schedule(policy)
        look()
        start_thread(look, "inner", crashes).join(JOIN_S)

    start_thread(work, "outer", crashes).join(JOIN_S)

    crashes.check()
    assert found == [getattr(os, number)] * 2
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


# --- tensors --------------------------------------------------------------------------------------


def test_ragged_of_lists_keeps_values_and_bounds_of_each_example() -> None:
    ragged = Ragged.of([[1, 2], [], [3]])

    assert ragged.values.tolist() == [1, 2, 3]
    assert ragged.offsets.tolist() == [0, 2, 2, 3]
    assert ragged.batch_size == 3


def test_selected_rows_need_one_id_for_each_row() -> None:
    values = np.zeros((2, 4), np.float32)

    SelectedRows(np.array([7, 9]), values)

    with pytest.raises(ValueError, match="do not fit"):
        SelectedRows(np.array([7]), values)


# --- log ------------------------------------------------------------------------------------------


@pytest.fixture
def psrt_logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("psrt")
    before = (logger.handlers[:], logger.level, logger.propagate)
    yield logger
    logger.handlers[:], logger.propagate = before[0], before[2]
    logger.setLevel(before[1])


@pytest.mark.usefixtures("psrt_logger")
def test_a_log_line_names_the_role_and_lower_levels_are_dropped() -> None:
    stream = io.StringIO()
    log.configure("pserver", "warning", stream)

    logging.getLogger("psrt.rpc").warning("retry %d", 1)
    logging.getLogger("psrt.rpc").info("frame")

    (line,) = stream.getvalue().splitlines()
    assert line.endswith(" pserver WARNING retry 1")
