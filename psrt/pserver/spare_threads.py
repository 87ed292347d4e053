"""Threads that help with a large request while nothing else needs them.

A handler thread that has several independent things to do - stripes of a large batch, halves of a
large block - does them itself, and spare threads that are idle at that moment take some off it. So
a pserver with one busy trainer uses its other cores, and one with many is not slowed by waiting for
each other: nobody ever waits for a thread that is busy elsewhere.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeAlias

log = logging.getLogger("psrt.pserver")

Job: TypeAlias = Callable[[], None]


class SpareThreads:
    """Any thread may `run`; the `count` threads begin when they are first called, end with `close`.

    If the system will not start one, callers do their jobs alone from then on.

    Jobs of one run must not wait for each other: the caller may do all of them, one by one.
    """

    def __init__(self, count: int) -> None:
        self._idle = threading.Semaphore(count)
        self._pool = ThreadPoolExecutor(count, "spare") if count else None
        self._calling = threading.Lock()  # so that nobody is called after `close`

    def run(self, jobs: Sequence[Job]) -> None:
        """Do all `jobs`; over when all of them are.

        If one raises, those that have not begun are dropped, those that have are awaited, and then
        the error is raised, the caller's own rather than one of another thread.
        """
        left, helpers, errors = deque(jobs), list[Future[None]](), list[BaseException]()
        try:
            self._call(helpers, len(jobs) - 1, left, errors)
            _work(left)
        except BaseException as error:
            errors.insert(0, error)
        left.clear()
        wait([helper for helper in helpers if not self._is_cancelled(helper)])
        del errors[1:]
        if errors:  # kept by nobody from here on: its frames may have views of rows, which then
            raise errors.pop()  # could not grow

    def close(self) -> None:
        """From now on callers do their jobs alone; the threads end, after jobs that have begun."""
        with self._calling:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()

    def _call(
        self,
        helpers: list[Future[None]],
        most: int,
        left: deque[Job],
        errors: list[BaseException],
    ) -> None:
        """Let idle threads work at what is `left`, and note them in `helpers`."""
        with self._calling:
            while self._pool is not None and len(helpers) < most and self._is_one_idle():
                helpers.append(Future())
                try:
                    self._pool.submit(self._help, helpers[-1], left, errors)
                except RuntimeError as error:  # the call waits all the same, for those that began
                    log.warning("large requests get no more help of other threads: %s", error)
                    self._pool.shutdown(wait=False)
                    self._pool = None

    def _is_one_idle(self) -> bool:
        """Whether a thread was idle; it is taken then."""
        return self._idle.acquire(blocking=False)

    def _help(self, helper: Future[None], left: deque[Job], errors: list[BaseException]) -> None:
        if not helper.set_running_or_notify_cancel():
            return
        try:
            _work(left)
        except BaseException as error:
            errors.append(error)
        self._idle.release()  # before the caller hears of it: its next run finds this thread idle
        helper.set_result(None)

    def _is_cancelled(self, helper: Future[None]) -> bool:
        """Let go of a thread that has not begun."""
        is_cancelled = helper.cancel()
        if is_cancelled:
            self._idle.release()
        return is_cancelled


ALONE = SpareThreads(0)
"""No threads: callers do everything themselves."""


def _work(left: deque[Job]) -> None:
    """Do jobs until none is left; one that raises is the last that begins, here and elsewhere."""
    try:
        while (job := _next(left)) is not None:
            job()
    finally:
        left.clear()


def _next(left: deque[Job]) -> Job | None:
    try:
        return left.popleft()
    except IndexError:
        return None
