"""A client's part in the recovery of its pserver.

A pserver that was killed may come back with the tables of its newest cut: same incarnation, another
process. The first call that meets it sends again what the tables lack, on its own thread; other
calls wait until that is done, as long as it advances. If the pserver dies meanwhile, it begins once
more.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from psrt.core.errors import ErrorCode, PsrtError, UnavailableError
from psrt.rpc.error_text import fenced, restarted, taking_over
from psrt.rpc.retry import RetryPolicy
from psrt.rpc.route import Route

log = logging.getLogger("psrt.rpc")


SOON_S = 0.1
"""The longest time between two attempts to reach a pserver that may recover: a launcher has it back
within a second, and every trainer waits for the last one that meets it."""


RESTART_BUDGETS = 3
"""Times the budget of other calls: a loaded host may take over a minute to start a process."""


def soon(policy: RetryPolicy) -> RetryPolicy:
    """The policy with at most `SOON_S` between two attempts, and time for a pserver's restart."""
    budget_s = RESTART_BUDGETS * policy.budget_s
    return replace(policy, max_s=min(policy.max_s, SOON_S), budget_s=budget_s)


class Recovering:
    """The process of one pserver, and the work that a new one needs; any thread calls this."""

    send_again: Callable[[], None] | None = None

    def __init__(self, route: Route, is_durable: bool = False) -> None:
        self._route, self._endpoint = route, route.place.endpoint
        self._is_durable = is_durable
        self._tables: int | None = None  # incarnation of the first reply
        self._process = self._complete = 0  # the newest process, and the newest that lacks nothing
        self._lock = threading.Lock()
        self._thread: int | None = None  # the thread inside `run`
        self.advances = 0  # replies that `run` has had

    @property
    def waits_for(self) -> Sequence[int]:
        """The codes of errors that end with a recovery, or with the cut of a change of the number
        of trainers: the call is tried again."""
        codes = [ErrorCode.RESTARTED, ErrorCode.RESIZING, ErrorCode.RECOVERING]
        if self._fails_over or self.send_again is not None:
            codes.append(ErrorCode.STOPPING)
        if self._fails_over:
            codes.append(ErrorCode.FENCED)
        return codes

    def again(self, error: PsrtError) -> PsrtError:
        """The error of a call that is tried again: at the backup of a pserver that ends."""
        ends = self._fails_over and error.code is ErrorCode.STOPPING
        return fenced(self._route.place.endpoint) if ends else error

    @property
    def is_due(self) -> bool:
        """True if calls of this thread must wait for `run`."""
        if self.send_again is None:
            return False  # a trainer that joins goes on, and sends again what it has later
        return self._process != self._complete and self._thread != threading.get_ident()

    @property
    def _fails_over(self) -> bool:
        return self._route.failover is not None

    def met(self, tables: int, process: int) -> None:
        """Record a reply to HELLO; raises `JobError` if this trainer cannot go on with it.

        A trainer of a durable job may meet another process before `send_again` is known. A part
        that fails over is served by another pserver then: `UnavailableError`; FENCED, or
        TAKING_OVER to a trainer that has not joined yet.
        """
        if self._tables is None:
            self._tables, self._process, self._complete = tables, process, process
        recovers = self._is_durable or self.send_again is not None
        if self._tables != tables or (self._process != process and not recovers):
            lost, failover = restarted(self._endpoint), self._route.failover
            if failover is None:
                raise lost
            raise (fenced if failover.has_begun else taking_over)(self._endpoint) from lost
        self._process = process

    def forget(self) -> None:
        """Take the next process that is met as the first one."""
        self._tables, self._process, self._complete = None, 0, 0

    def answered(self) -> None:
        """Record a reply to a call of this thread: one more, if it is inside `run`."""
        if self._thread == threading.get_ident():
            self.advances += 1

    def run(self, timeout_s: float) -> None:
        """Send again, or wait until another thread has.

        Raises `UnavailableError` (RECOVERING) if that thread gets no reply within `timeout_s`. It
        may wait for other trainers, so the pserver may be well.
        """
        seen = self.advances
        while not self._lock.acquire(timeout=timeout_s):
            if self.advances == seen:
                raise UnavailableError(
                    f"Pserver {self._endpoint} did not recover in {timeout_s:.1f} s.",
                    code=ErrorCode.RECOVERING,
                    hint="See its log: it waits for pushes that trainers send again.",
                )
            seen = self.advances
        try:
            self._thread = threading.get_ident()
            while self._complete != self._process:
                self._send_again()
        finally:
            self._thread = None
            self._lock.release()

    def _send_again(self) -> None:
        process = self._process
        assert self.send_again is not None, "`met` has refused another process"
        log.warning(
            "pserver %s was started again and is sent what it has lost", self._route.place.endpoint
        )
        try:
            self.send_again()
        except PsrtError:
            if self._process == process:
                raise
        else:
            self._complete = process
