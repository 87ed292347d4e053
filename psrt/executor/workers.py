"""The threads that walk graphs: a thin shell around `Schedule`.

A pool of n threads is the caller of `walk` and n − 1 threads that wait between walks. They end with
`close`, or with the process. A walk returns when nothing runs any more; while it waits for running
nodes it says so in the log, by name, every `PATIENCE_S`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from psrt.core.threads import CrashReport, start_thread
from psrt.executor.schedule import Schedule

log = logging.getLogger("psrt.executor")

PATIENCE_S = 60.0

Execute = Callable[[int], None]
Waiting = Callable[[], AbstractContextManager[object]]


class Workers:
    """`threads` threads, the caller's among them."""

    def __init__(self, threads: int, name: str = "executor") -> None:
        self._changed = threading.Condition()
        self._walk: tuple[Schedule, Execute] | None = None
        self._closed = False
        self._crashes = CrashReport()
        for number in range(1, threads):
            start_thread(self._serve, f"{name}-{number}", self._crashes)

    def walk(self, schedule: Schedule, execute: Execute, waiting: Waiting = nullcontext) -> None:
        """Run all nodes by `execute(node)`; the first failure is in `schedule.failure` then.

        The caller's thread waits for others inside of `waiting()`.
        """
        self._crashes.check()
        with self._changed:
            self._walk = (schedule, execute)
            self._changed.notify_all()
        try:
            self._help(schedule, execute, waiting)
        finally:
            with self._changed:
                self._walk = None

    def close(self) -> None:
        """End the threads; idempotent."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _serve(self) -> None:
        """Help with one walk after another."""
        last: Schedule | None = None
        while True:
            with self._changed:
                while not self._closed and (self._walk is None or self._walk[0] is last):
                    self._changed.wait()
                if self._closed or self._walk is None:
                    return
                schedule, execute = self._walk
            self._help(schedule, execute, nullcontext)
            last = schedule

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
            node = self._next(schedule, waiting, report)

    def _next(
        self, schedule: Schedule, waiting: Waiting, report: Callable[[], None] | None = None
    ) -> int | None:
        """Report on the last node and take another; None once the walk is over."""
        with self._changed:
            if report is not None:
                report()
            while (node := schedule.take()) is None:
                if schedule.is_over:
                    self._changed.notify_all()
                    return None
                with waiting():
                    self._await_change(schedule)
            if schedule.ready:
                self._changed.notify()
            return node

    def _await_change(self, schedule: Schedule) -> None:
        if not self._changed.wait(PATIENCE_S):
            running = ", ".join(str(schedule.graph.nodes[at]) for at in schedule.running)
            log.warning("waited %.0f s for %s", PATIENCE_S, running)
