"""Async: pservers apply gradients on arrival, nobody waits for anybody.

Parameters come back on other threads than the training thread:

    sender n      pulls all dense parameters with a push, once enough gradients were sent, and the
                  rows that `read_behind` has asked for
    receiver      pulls large ones in calls of its own while pushes wait for each other
    rows <ep>     one per pserver: pulls the rows of the next step from `begin` on
    pserver <ep>  one per pserver, if there are several: carries the receiver's pulls
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future

from psrt.communicator.async_.gradient_queue import Merged
from psrt.communicator.async_.merge_queue import MergeQueue
from psrt.communicator.async_.queued import QueuedCommunicator
from psrt.communicator.async_.rows_behind import AskedRows, Rows, RowsBehindPush
from psrt.communicator.async_.sender import OnAnswer
from psrt.communicator.base import Versions
from psrt.communicator.requests import BACKSTOP_S, PendingCalls, PserverGroup, Request
from psrt.core.specs import Async
from psrt.core.types import F32, I64
from psrt.rpc.methods import Method

WAIT_S = 0.010
"""Length of one of the `send_wait_times` waits for more gradients."""

LARGE_BYTES = 4 << 20
"""Dense parameters of this size or more, per pserver on average, are pulled apart from late pushes.

Smaller ones always come with the answer of a push: a call of their own costs trainer and pserver
0.4 ms of CPU time, and threads to wake. In W1 (1 MB for each of 2 pservers) that and one push
instead of two a step take 20 % less CPU time for communication, 12.2 ms instead of 15.5.
"""


class DueDense:
    """Decides when to pull dense parameters: once `enough` steps were sent since the last pull.

    At most one pull is under way. The push that makes it due carries it, or the receiver makes it.
    """

    def __init__(self, enough: int) -> None:
        self._enough = enough
        self._changed = threading.Condition()
        self._sent = 0
        self._is_under_way = False
        self._closed = False

    def begin_with(self, steps: int) -> bool:
        """True if a push of `steps` must carry the pull; call `ended` after its answer."""
        with self._changed:
            if self._is_under_way or self._sent + steps < self._enough:
                return False
            self._begin()
            return True

    def sent(self, steps: int) -> None:
        """A push without a pull was answered."""
        with self._changed:
            self._sent += steps
            self._changed.notify_all()

    def ended(self) -> None:
        """The pull under way has ended."""
        with self._changed:
            self._is_under_way = False
            self._changed.notify_all()

    def wait(self) -> bool:
        """Wait until a pull is due, without a deadline; False once closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._is_due())
            self._begin()
            return not self._closed

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _is_due(self) -> bool:
        return self._sent >= self._enough and not self._is_under_way

    def _begin(self) -> None:
        self._sent, self._is_under_way = 0, True


class AsyncCommunicator(QueuedCommunicator):
    """Waits for rows only; dense parameters are the newest that have arrived."""

    def __init__(
        self,
        mode: Async,
        pservers: PserverGroup,
        on_wait: Callable[[str], None],
        given: bool = False,
    ) -> None:
        plan = pservers.plan
        queue = MergeQueue(
            mode.send_queue_size,
            mode.max_merge_var_num,
            mode.send_wait_times * WAIT_S,
            average=mode.merge == "average",
            pservers=len(plan.endpoints),
            copies=None if given else pservers.copies,
        )
        super().__init__(pservers, on_wait, queue, mode.thread_pool_size)
        size_bytes = sum(4 * math.prod(shape) for shape in plan.dense_shapes.values())
        is_large = size_bytes >= LARGE_BYTES * len(plan.endpoints)
        self._has_receiver = mode.independent_recv_thread and is_large
        self._due = DueDense(
            mode.min_send_grad_num_before_recv if mode.independent_recv_thread else 1
        )
        self._begun: tuple[dict[str, F32], PendingCalls] | None = None
        merges = min(mode.max_merge_var_num, mode.send_queue_size) > 1
        self._has_rows_behind = not (merges or mode.thread_pool_size > 1 or self._has_receiver)
        self._asked = AskedRows(pservers.router, self._take_behind)

    def begin(self, wanted: Mapping[str, I64]) -> None:
        self._check()
        requests = self._pservers.router.requests()
        rows = self._pservers.router.pull_rows(requests, wanted)
        timeout_s = self._pservers.call_timeout_s
        answer = self._pservers.submit(self._row_threads, Method.PULL, requests, timeout_s)
        self._begun = rows, answer

    def read_behind(self, wanted: Mapping[str, I64]) -> RowsBehindPush | None:
        """See `Communicator.read_behind`; None unless the push of the step leaves at once.

        Others wait for more gradients, overtake each other, or bring nothing else back.
        """
        self._check()
        is_next = self._has_rows_behind and not any(self._on_its_way())
        return self._asked.ask(wanted) if is_next else None

    def _start_threads(self) -> None:
        if self._has_receiver:
            self._background.start(self._receive, "receiver")
        super()._start_threads()

    def _take_rows(self) -> tuple[dict[str, F32], Versions]:
        if self._begun is None:
            return {}, {}
        (rows, answer), self._begun = self._begun, None
        with self._late_s.time(), self._pservers.span("wait for rows"):
            return rows, answer.wait("pulling rows", self._pservers.call_timeout_s)

    def _take_behind(self, coming: Future[Rows]) -> dict[str, F32]:
        """On the training thread: the rows that a push brings."""
        timeout_s = 2 * self._pservers.call_timeout_s + BACKSTOP_S  # a push fails before that
        with self._late_s.time(), self._pservers.span("wait for rows"):
            rows, versions = self._background.wait(coming, "the push before a step", timeout_s)
        self._pulled(versions)
        return rows

    def _before_push(self, requests: list[Request], push: Merged) -> OnAnswer:
        """Rows that were asked for, and dense parameters that are due, come with the answer."""
        rows = self._asked.add_to(requests) if push.steps else None
        dense = self._dense_with(requests, push)
        if rows is None:
            return dense

        def receive(versions: Versions) -> None:
            rows(versions)
            dense(versions)

        return receive

    def _dense_with(self, requests: list[Request], push: Merged) -> OnAnswer:
        """Dense parameters that are due come with the answer of a push.

        Large ones would hold up pushes that wait for each other: then the receiver pulls them.
        """
        is_apart = push.is_late and self._has_receiver
        if is_apart or not self._due.begin_with(push.steps):
            return lambda versions: self._due.sent(push.steps)
        dense = self._snapshots.fill()
        self._pservers.router.pull_dense(requests, dense)

        def receive(versions: Versions) -> None:
            self._publish(dense, versions)
            self._due.ended()

        return receive

    def _end(self, timeout_s: float) -> None:
        self._due.close()
        super()._end(timeout_s)

    def _receive(self) -> None:
        while self._due.wait():
            self._pull_dense()
            self._due.ended()
