"""Helper threads that take tasks of a large request while their cores are idle.

A handler thread with several independent tasks, such as stripes of a large batch or halves of a
large block, runs them itself, and idle helper threads take some of them. So a pserver with one busy
trainer uses its other cores, and one with many is not slowed by waiting: no caller ever waits for a
thread that is busy elsewhere.

A run takes less than a millisecond, and to wake a thread takes a tenth of one. So a caller that
finds no task left spins for a moment until the helpers end, before it sleeps
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
from psrt.core.tracing import carried
from psrt.core.types import I64
from psrt.kernels.lowlevel import announce, await_change

log = logging.getLogger("psrt.pserver")

Task: TypeAlias = Callable[[], None]

_OFFERS = 500
"""The number of times that a spinning thread yields its core: for half a millisecond, or for as
long as others take it."""


class HelperThreads:
    """`count` threads, which start at the first call for help and end with `close`.

    Any thread may `run`. If the system refuses to start a thread, callers run their tasks alone
    from then on. Errors of tasks go to the caller of `run`; any other error that ends a thread goes
    to `crashes`. Tasks of one run must not wait for each other: the caller may run all of them, one
    by one.
    """

    def __init__(self, count: int, crashes: CrashReport | None = None) -> None:
        self._crashes = crashes or CrashReport()
        self._lock = threading.Lock()  # guards the four below
        self._is_open = count > 0
        self._idle = count
        self._callers = 0
        self._threads: list[threading.Thread] = []
        self._inbox: SimpleQueue[_TaskGroup | None] = SimpleQueue()

    def run(self, tasks: Sequence[Task]) -> None:
        """Run all `tasks` and return when they have ended.

        If one raises, tasks that have not begun are dropped, the others are awaited, and then the
        error is raised: that of the caller's thread rather than one of a helper.
        """
        group, errors = _TaskGroup([*map(carried, tasks)]), list[BaseException]()
        try:
            self._call(group, len(tasks) - 1)
            group.work()
        except BaseException as error:
            errors.append(error)
        group.cancel()
        group.await_helpers()
        self._leave(group.helpers)
        errors += group.errors
        group.errors.clear()
        del errors[1:]
        if errors:  # no reference stays here: its frames may have views of rows, which then
            raise errors.pop()  # could not grow

    def close(self) -> None:
        """End the threads after tasks that have begun; later runs use the caller's thread."""
        with self._lock:
            self._dismiss()
        for thread in self._threads:
            thread.join()

    def _call(self, group: _TaskGroup, most: int) -> None:
        """Call up to `most` idle threads to work on `group`; each other caller takes the core of
        one."""
        with self._lock:
            self._callers += 1
            count = min(most, self._idle + 1 - self._callers) if self._is_open else 0
            if count > 0 and not self._threads:
                count = self._start(count)
            if count > 0:
                self._idle -= count
                group.called(count)
                for _ in range(count):
                    self._inbox.put(group)

    def _start(self, count: int) -> int:
        """Start the threads; return `count`, or close and return 0 if one did not start."""
        try:
            for number in range(self._idle):
                thread = start_thread(self._serve, f"helper_{number}", self._crashes)
                self._threads.append(thread)
        except RuntimeError as error:
            log.warning("large requests get no help from other threads: %s", error)
            self._dismiss()
            return 0
        return count

    def _dismiss(self) -> None:
        """With the lock held, end the calls; the threads end after those made before."""
        if self._is_open:
            self._is_open = False
            for _ in self._threads:
                self._inbox.put(None)

    def _leave(self, helpers: int) -> None:
        """Count a caller and its helpers as idle: they have ended, or will not begin."""
        with self._lock:
            self._callers -= 1
            self._idle += helpers

    def _serve(self) -> None:
        """Help with one group after another."""
        while (group := self._inbox.get()) is not None:
            if group.begin():
                self._help(group)
            del group  # and the frames that its errors refer to

    def _help(self, group: _TaskGroup) -> None:
        try:
            group.work()
        except BaseException as error:
            group.errors.append(error)
        group.end()


class _TaskGroup:
    """The tasks of one caller, and the helpers called for them."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.errors: list[BaseException] = []
        self.helpers = 0  # that were called
        self._left = deque(tasks)
        self._lock = threading.Lock()  # guards the two below
        self._expected = 0  # helpers that have not begun
        self._begun = 0
        self._ended: I64 = np.zeros(1, np.int64)
        self._ends: SimpleQueue[None] = SimpleQueue()

    def called(self, helpers: int) -> None:
        self.helpers = self._expected = helpers

    def begin(self) -> bool:
        """Return True if a helper may begin, False if it comes too late."""
        with self._lock:
            if not self._expected:
                return False
            self._expected -= 1
            self._begun += 1
            return True

    def cancel(self) -> None:
        """Cancel the helpers that have not begun: no task is left."""
        with self._lock:
            self._expected = 0

    def work(self) -> None:
        """Run tasks until none is left; after one that raises, no thread begins another."""
        try:
            while (task := self._next()) is not None:
                task()
        finally:
            self._left.clear()

    def end(self) -> None:
        """Record that a helper has ended."""
        announce(self._ended)
        self._ends.put(None)

    def await_helpers(self) -> None:
        """Return when all helpers that have begun have ended; call it after `cancel`."""
        for number in range(self._begun):
            await_change(self._ended, number, _OFFERS)
        if self._ended[0] < self._begun:
            for _ in range(self._begun):
                self._ends.get()

    def _next(self) -> Task | None:
        try:
            return self._left.popleft()
        except IndexError:
            return None


NO_HELPERS = HelperThreads(0)
"""No threads: callers run all their tasks themselves."""
