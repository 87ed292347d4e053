"""Threads that help with a large request while nothing else needs them.

A handler thread that has several independent things to do - stripes of a large batch, halves of a
large block - does them itself, and spare threads that are idle at that moment take some off it. So
a pserver with one busy trainer uses its other cores, and one with many is not slowed by waiting for
each other: nobody ever waits for a thread that is busy elsewhere.

A run takes less than a millisecond, and to be woken takes a tenth of one: whoever has done all that
was left looks for the end of the others for a moment before it sleeps
(`psrt.kernels.lowlevel.spin`).
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import TypeAlias

import numpy as np

from psrt.core.threads import CrashReport, start_thread
from psrt.core.types import I64
from psrt.kernels.lowlevel import announce, await_change

log = logging.getLogger("psrt.pserver")

Job: TypeAlias = Callable[[], None]

_OFFERS = 500
"""How often a thread that looks for the end of another offers its core: for half a millisecond,
or as long as others take it."""


class SpareThreads:
    """Any thread may `run`; the `count` threads begin when they are first called, end with `close`.

    If the system will not start one, callers do their jobs alone from then on. Errors of jobs go to
    the caller of `run`, and what else ends a thread goes to `crashes`.

    Jobs of one run must not wait for each other: the caller may do all of them, one by one.
    """

    def __init__(self, count: int, crashes: CrashReport | None = None) -> None:
        self._crashes = crashes or CrashReport()
        self._lock = threading.Lock()  # guards the four below
        self._is_open = count > 0
        self._idle = count
        self._callers = 0
        self._threads: list[threading.Thread] = []
        self._inbox: SimpleQueue[_SharedJob | None] = SimpleQueue()

    def run(self, jobs: Sequence[Job]) -> None:
        """Do all `jobs`; over when all of them are.

        If one raises, those that have not begun are dropped, those that have are awaited, and then
        the error is raised, the caller's own rather than one of another thread.
        """
        run, errors = _SharedJob(jobs), list[BaseException]()
        try:
            self._call(run, len(jobs) - 1)
            run.work()
        except BaseException as error:
            errors.append(error)
        run.cancel()
        run.await_helpers()
        self._leave(run.helpers)
        errors += run.errors
        run.errors.clear()
        del errors[1:]
        if errors:  # kept by nobody from here on: its frames may have views of rows, which then
            raise errors.pop()  # could not grow

    def close(self) -> None:
        """From now on callers do their jobs alone; the threads end, after jobs that have begun."""
        with self._lock:
            self._dismiss()
        for thread in self._threads:
            thread.join()

    def _call(self, run: _SharedJob, most: int) -> None:
        """Let idle threads work at what is left of `run`, `most` of them; each other caller takes
        the core of one."""
        with self._lock:
            self._callers += 1
            count = min(most, self._idle + 1 - self._callers) if self._is_open else 0
            if count > 0 and not self._threads:
                count = self._start(count)
            if count > 0:
                self._idle -= count
                run.called(count)
                for _ in range(count):
                    self._inbox.put(run)

    def _start(self, count: int) -> int:
        """Start the threads; returns `count`, or 0 if one did not start, and no more is called."""
        try:
            for number in range(self._idle):
                thread = start_thread(self._serve, f"spare_{number}", self._crashes)
                self._threads.append(thread)
        except RuntimeError as error:
            log.warning("large requests get no more help of other threads: %s", error)
            self._dismiss()
            return 0
        return count

    def _dismiss(self) -> None:
        """With the lock held: no more calls; the threads end once they have seen those before."""
        if self._is_open:
            self._is_open = False
            for _ in self._threads:
                self._inbox.put(None)

    def _leave(self, helpers: int) -> None:
        """A caller is through, and so are those it called, or they will not begin."""
        with self._lock:
            self._callers -= 1
            self._idle += helpers

    def _serve(self) -> None:
        """Help with one run after another."""
        while (run := self._inbox.get()) is not None:
            if run.begin():
                self._help(run)
            del run  # and what its errors refer to

    def _help(self, run: _SharedJob) -> None:
        try:
            run.work()
        except BaseException as error:
            run.errors.append(error)
        run.end()


class _SharedJob:
    """The jobs of one caller, and the helpers that were called for them."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.errors: list[BaseException] = []
        self.helpers = 0  # that were called
        self._left = deque(jobs)
        self._lock = threading.Lock()  # guards the two below
        self._expected = 0  # helpers that have not begun
        self._begun = 0
        self._ended: I64 = np.zeros(1, np.int64)
        self._ends: SimpleQueue[None] = SimpleQueue()

    def called(self, helpers: int) -> None:
        self.helpers = self._expected = helpers

    def begin(self) -> bool:
        """Whether a helper comes in time."""
        with self._lock:
            if not self._expected:
                return False
            self._expected -= 1
            self._begun += 1
            return True

    def cancel(self) -> None:
        """No job is left: helpers that have not begun will not."""
        with self._lock:
            self._expected = 0

    def work(self) -> None:
        """Do jobs until none is left; one that raises is the last that begins, here and
        elsewhere."""
        try:
            while (job := self._next()) is not None:
                job()
        finally:
            self._left.clear()

    def end(self) -> None:
        """A helper has done what it could."""
        announce(self._ended)
        self._ends.put(None)

    def await_helpers(self) -> None:
        """Return when all that have begun have ended; nobody begins any more."""
        for number in range(self._begun):
            await_change(self._ended, number, _OFFERS)
        if self._ended[0] < self._begun:
            for _ in range(self._begun):
                self._ends.get()

    def _next(self) -> Job | None:
        try:
            return self._left.popleft()
        except IndexError:
            return None


ALONE = SpareThreads(0)
"""No threads: callers do everything themselves."""
