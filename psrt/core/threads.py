"""Threads whose crashes are reported.

`CrashReport` receives the failure of a background thread: it logs it, keeps it for waiting threads,
and passes it to a callback (a daemon stops, a trainer's next wait raises).
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable

from psrt.core.errors import DeadlineError, InternalError, PsrtError

log = logging.getLogger("psrt.threads")


class CrashReport:
    """Collects the first crash of a group of threads."""

    def __init__(self, on_crash: Callable[[BaseException], None] | None = None) -> None:
        self._on_crash = on_crash
        self._lock = threading.Lock()
        self.error: BaseException | None = None
        self.thread_name = ""

    def report(self, error: BaseException, thread_name: str) -> None:
        is_expected = isinstance(error, PsrtError) and not isinstance(error, InternalError)
        # The waiting thread reports an expected failure; a traceback would only hide it.
        trace = None if is_expected else error
        log.error("thread %s crashed: %s", thread_name, error, exc_info=trace)
        with self._lock:
            first = self.error is None
            if first:
                self.error, self.thread_name = error, thread_name
        if first and self._on_crash is not None:
            self._on_crash(error)

    def check(self) -> None:
        """Raise `InternalError` in the caller if a thread of the group has crashed."""
        if self.error is not None:
            raise InternalError(
                f"background thread {self.thread_name} crashed: {self.error}"
            ) from self.error


def start_thread(
    target: Callable[[], object], name: str, crashes: CrashReport, *, daemon: bool = True
) -> threading.Thread:
    """Run `target` in a named thread; an exception goes to `crashes`."""

    def guarded() -> None:
        try:
            target()
        except BaseException as error:
            crashes.report(error, name)

    thread = threading.Thread(target=guarded, name=name, daemon=daemon)
    thread.start()
    return thread


def start_timer(
    delay_s: float, target: Callable[[], object], name: str, crashes: CrashReport
) -> threading.Event:
    """Run `target` in a named thread after `delay_s` seconds; setting the event returned cancels.

    An exception goes to `crashes`.
    """
    cancelled = threading.Event()

    def wait_and_run() -> None:
        if not cancelled.wait(delay_s):
            target()

    start_thread(wait_and_run, name, crashes)
    return cancelled


def join_threads(
    threads: Iterable[threading.Thread], timeout_s: float, reading: Callable[[str], object]
) -> None:
    """Wait for threads that were asked to end, `timeout_s` for all of them.

    Raises `DeadlineError` with the name of one that still runs, and what it is `reading`.
    """
    deadline = time.monotonic() + timeout_s
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            raise DeadlineError(
                f"{thread.name} did not end within {timeout_s:g} s; "
                f"it is reading {reading(thread.name)}."
            )


SCHEDULING = ("normal", "batch")


def schedule(policy: str) -> None:
    """Set the scheduling policy of the calling thread and of those that it starts later.

    A `batch` thread (SCHED_BATCH of Linux) preempts no other thread when it wakes, but waits for
    its turn. So computing threads keep their caches, and replies come some milliseconds later where
    there are more threads than cores. `normal` changes nothing, nor does `batch` on other systems.
    """
    if policy == "batch" and hasattr(os, "SCHED_BATCH"):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
