"""The background threads of one communicator: started and ended together, one failure for all.

The first thread that fails ends the work of the others by `on_failure`. The training thread raises
the failure at its next `check`, or while it waits. A call interrupted by `close` is no failure.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, TypeVar

from psrt.core.errors import DeadlineError, InternalError, PsrtError
from psrt.core.threads import CrashReport, start_thread

T = TypeVar("T")


class Background:
    """Used by the training thread, except for the loops it starts."""

    def __init__(self, on_failure: Callable[[], None]) -> None:
        self._on_failure = on_failure
        self._failed: Future[None] = Future()
        self._failing = threading.Lock()
        self._crashes = CrashReport(self._fail)
        self._threads: list[threading.Thread] = []
        self._ended_by: PsrtError | None = None
        self._closed = False

    def start(self, loop: Callable[[], None], name: str) -> None:
        """Run `loop` in a thread of its own until it returns."""

        def until_closed() -> None:
            try:
                loop()
            except PsrtError:
                if not self._closed:  # a call interrupted by `close` is no crash
                    raise

        self._threads.append(start_thread(until_closed, name, self._crashes))

    def check(self) -> None:
        """Raise what ended a thread or all of them, or `InternalError` after `close`."""
        if self._ended_by is not None:
            raise self._ended_by.again()
        if isinstance(self._crashes.error, PsrtError):
            raise self._crashes.error
        self._crashes.check()
        if self._closed:
            raise InternalError("the communicator was used after it was stopped")

    def wait(self, future: Future[T], doing: str, timeout_s: float) -> T:
        """The result of `future`; raises the failure of a thread if that comes first."""
        ends: list[Future[Any]] = [future, self._failed]
        if future in wait(ends, timeout_s, FIRST_COMPLETED).done:
            return future.result()
        self.check()
        raise DeadlineError(f"{doing} has not ended after {timeout_s:.0f} s")

    def end(self, error: PsrtError) -> None:
        """End the work of all threads; the training thread raises `error` from now on."""
        self._ended_by = error
        self._fail(error)

    def join(self, timeout_s: float) -> None:
        """Wait for threads that are ending; each ends after its current call."""
        for thread in self._threads:
            thread.join(timeout_s)

    def close(self) -> None:
        """From now on a failing call is no failure of its thread."""
        self._closed = True

    def _fail(self, error: BaseException) -> None:
        with self._failing:
            if not self._failed.done():
                self._failed.set_result(None)
        self._on_failure()
