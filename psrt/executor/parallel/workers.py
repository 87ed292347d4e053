"""The threads that walk graphs: a thin shell around `Schedule`.

A pool of n threads is the caller of `walk` and n − 1 threads that wait between walks. They end with
`close`, once nobody holds the executor, or with the process. A waiting thread first polls for
`spin_s` and then sleeps: to wake a sleeping thread of a virtual machine took up to 4 ms where a
step took 20. A walk returns when nothing is running; while it waits for running nodes it logs their
names every `PATIENCE_S`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import numpy as np

from psrt.core.errors import ProgramError
from psrt.core.threads import CrashReport, start_thread
from psrt.executor.parallel.schedule import Schedule
from psrt.kernels.lowlevel import await_change

log = logging.getLogger("psrt.executor")

PATIENCE_S = 60.0
GRACE_S = 10.0
_OFFERS = 1000  # polls between two checks of the deadline: 1 ms or more

Execute = Callable[[int], None]
Waiting = Callable[[], AbstractContextManager[object]]


class Workers:
    """`threads` threads, the caller's among them."""

    def __init__(self, threads: int, spin_s: float = 0.0, name: str = "executor") -> None:
        self._spin_s = spin_s
        self._threads = threads
        self._changed = threading.Condition()
        self._changes = np.zeros(1, np.int64)  # counts what waiting threads wait for
        self._walk: tuple[Schedule, Execute] | None = None
        self._walks = 0
        self._closed = False
        self._crashes = CrashReport()
        await_change.load()
        for number in range(1, threads):
            start_thread(self._serve, f"{name}-{number}", self._crashes)

    def walk(self, schedule: Schedule, execute: Execute, waiting: Waiting = nullcontext) -> None:
        """Run all nodes by `execute(node)`; the first failure is then in `schedule.failure`.

        The caller's thread waits for others inside of `waiting()`.
        """
        self._crashes.check()
        with self._changed:
            if self._closed:
                raise ProgramError(
                    "This executor was closed, so it has no threads to run in.",
                    hint="Make a new one, or close it later.",
                )
            self._walk, self._walks = (schedule, execute), self._walks + 1
            self._wake()
        try:
            self._help(schedule, execute, waiting)
        except BaseException:  # Ctrl-C while waiting
            self._abandon(schedule)
            raise
        finally:
            with self._changed:
                self._walk = None

    def _abandon(self, schedule: Schedule) -> None:
        """Start no more nodes, and wait for running ones: the next walk reuses their memory."""
        with self._changed:
            schedule.abandon()
            self._changed.wait_for(lambda: not schedule.running, GRACE_S)

    def close(self) -> None:
        """End the threads; idempotent."""
        with self._changed:
            self._closed = True
            self._wake()

    def _serve(self) -> None:
        """Help with one walk after another."""
        last: int | None = 0
        while last is not None:
            last = self._help_after(last)

    def _help_after(self, last: int) -> int | None:
        """Help with a walk after number `last`; returns its number, or None after `close`.

        A waiting thread refers to no walk: a graph refers to its executor, which may be dropped.
        """
        with self._changed:
            self._await(lambda: self._closed or self._has_walk_after(last), None)
            if self._closed or self._walk is None:
                return None
            number, (schedule, execute) = self._walks, self._walk
        self._help(schedule, execute, nullcontext)
        return number

    def _has_walk_after(self, last: int) -> bool:
        return self._walk is not None and self._walks != last

    def _wake(self, everybody: bool = True) -> None:
        """Wake waiting threads after a change; call it with the lock held."""
        self._changes[0] += 1
        self._changed.notify(self._threads if everybody else 1)

    def _await(self, is_so: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait, with the lock held, until `is_so()`; returns False after the timeout."""
        deadline = time.perf_counter() + self._spin_s
        while not is_so() and time.perf_counter() < deadline:
            seen = int(self._changes[0])
            self._changed.release()
            try:
                await_change(self._changes, seen, _OFFERS)
            finally:
                self._changed.acquire()
        return self._changed.wait_for(is_so, timeout_s)

    def _help(self, schedule: Schedule, execute: Execute, waiting: Waiting) -> None:
        """Run nodes until the walk is over."""
        node = self._next(schedule, waiting)
        while node is not None:
            try:
                execute(node)
            except BaseException as error:
                report = partial(schedule.failed, node, error)
            else:
                report = partial(schedule.done, node)
            node = self._next(schedule, waiting, node, report)

    def _next(
        self,
        schedule: Schedule,
        waiting: Waiting,
        last: int | None = None,
        report: Callable[[], None] | None = None,
    ) -> int | None:
        """Report on the last node and take another; None once the walk is over."""
        with self._changed:
            if report is not None:
                report()
                if schedule.is_over:
                    self._wake()
            while (node := schedule.take(last)) is None:
                if schedule.is_over:
                    self._wake()
                    return None
                with waiting():
                    self._await_change(schedule)
            if schedule.ready:
                self._wake(everybody=False)
            return node

    def _await_change(self, schedule: Schedule) -> None:
        """Wait until a node is ready or the walk is over."""
        if not self._await(lambda: schedule.ready > 0 or schedule.is_over, PATIENCE_S):
            running = ", ".join(str(schedule.graph.nodes[at]) for at in schedule.running)
            log.warning("waited %.0f s for %s", PATIENCE_S, running)
