"""Async: gradients are applied on arrival, nobody waits for anybody.

Threads besides the training thread, which only copies gradients into queues and picks up results:

    sender      takes merged gradients from the queue and pushes them to all pservers
    receiver    pulls all dense parameters once enough gradients were sent
    rows <ep>   one per pserver: pulls the rows of the next step from `begin` on
    pserver <ep>  one per pserver, if there are several: carries the pushes and the dense pulls

A failure in any of them is raised by the next call of the training thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from psrt.communicator.base import Gradients, Pulled, Versions
from psrt.communicator.lanes import BACKSTOP_S
from psrt.communicator.merge_queue import Merged, MergeQueue
from psrt.communicator.pservers import Answer, Pservers
from psrt.communicator.snapshots import Snapshots
from psrt.core.errors import DeadlineError, InternalError, PsrtError
from psrt.core.metrics import Registry
from psrt.core.specs import Async
from psrt.core.threads import CrashReport, start_thread
from psrt.core.types import F32, I64
from psrt.rpc.methods import Method

WAIT_S = 0.010
"""Length of one of the `send_wait_times` waits for more gradients."""

LEAST_S = 1.0
"""What a call at the end is given when draining used up the time to stop."""


class AsyncMetrics:
    def __init__(self, counters: Registry) -> None:
        self.steps_sent = counters.counter("steps_sent", "mini-batches whose gradients were pushed")
        self.pushes = counters.counter("pushes", "pushes sent, to all pservers at once")
        self.merged = counters.counter("gradients_merged", "gradients that pushes stood for")
        self.dense_pulls = counters.counter("dense_pulls", "pulls of all dense parameters")
        self.blocked_s = counters.timer("queue_s", "seconds handing over gradients (back-pressure)")
        self.rows_late_s = counters.timer("rows_late_s", "seconds waiting for prefetched rows")

    def count(self, merged: Merged) -> None:
        self.pushes.add()
        self.steps_sent.add(merged.steps)
        self.merged.add(merged.gradients_merged)


class SentCount:
    """Steps whose gradients were sent since the last dense pull; the receiver waits on it."""

    def __init__(self, enough: int) -> None:
        self._enough = enough
        self._changed = threading.Condition()
        self._sent = 0
        self._closed = False

    def add(self, steps: int) -> None:
        with self._changed:
            self._sent += steps
            self._changed.notify_all()

    def wait(self) -> bool:
        """True when enough were sent (counts from 0 again), False when closed; no deadline."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._sent >= self._enough)
            self._sent = 0
            return not self._closed

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class AsyncCommunicator:
    def __init__(self, mode: Async, pservers: Pservers, on_wait: Callable[[str], None]) -> None:
        self._mode = mode
        self._pservers = pservers
        self._on_wait = on_wait
        self._queue = MergeQueue(
            mode.send_queue_size, mode.max_merge_var_num, mode.send_wait_times * WAIT_S
        )
        self._sent = SentCount(mode.min_send_grad_num_before_recv)
        self._crashes = CrashReport(lambda error: self._queue.close())
        self._snapshots = Snapshots(pservers.plan.dense_shapes, keep=2)
        self._threads: list[threading.Thread] = []
        self._row_lanes = pservers.lanes("rows")
        self._begun: tuple[dict[str, F32], Answer] | None = None
        self._versions: Versions = {}
        self._final: dict[str, F32] | None = None
        self._closed = False
        self._metrics = AsyncMetrics(pservers.counters)

    @property
    def counters(self) -> Registry:
        return self._pservers.counters

    # --- the training thread ----------------------------------------------------------------------

    def start(self, timeout_s: float) -> dict[str, F32]:
        self._pservers.connect(timeout_s, self._on_wait)
        self._pull_dense()
        self._start_thread(self._send, "sender")
        if self._mode.independent_recv_thread:
            self._start_thread(self._receive, "receiver")
        return self._take_dense()

    def pull_rows(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        self._check()
        rows, versions = self._pservers.pull_rows(wanted)
        self._versions = {**self._versions, **versions}
        return rows

    def begin(self, wanted: Mapping[str, I64]) -> None:
        self._check()
        requests = self._pservers.router.requests()
        rows = self._pservers.router.pull_rows(requests, wanted)
        timeout_s = self._pservers.call_timeout_s
        answer = self._pservers.submit(self._row_lanes, Method.PULL, requests, timeout_s)
        self._begun = rows, answer

    def finish(self, gradients: Gradients) -> Pulled:
        self._check()
        # A push that hangs fails by itself within the call timeout and says more than a full queue.
        timeout_s = self._pservers.call_timeout_s + BACKSTOP_S
        with self._metrics.blocked_s.time():
            queued = self._queue.put(gradients, self._versions, timeout_s)
        if not queued:
            self._check()
        rows = self._finish_rows()
        return Pulled(self._take_dense(), rows)

    def flush(self, timeout_s: float) -> dict[str, F32]:
        self._check()
        deadline = time.monotonic() + timeout_s
        if not self._queue.drain(timeout_s):
            self._check()
            raise DeadlineError(
                f"{self._queue.waiting} queued gradients were not sent within {timeout_s:.1f} s; "
                "they are not in the parameters.",
                hint="Give the trainer more time to stop, or see the logs of the pservers.",
            )
        dense = self._snapshots.empty()
        self._pservers.pull_dense(dense, _left(deadline))
        return dense

    def stop(self, timeout_s: float) -> dict[str, F32]:
        if self._final is None:
            deadline = time.monotonic() + timeout_s
            try:
                self._final = self.flush(timeout_s)
                self._end_threads(_left(deadline))
                self._pservers.complete(_left(deadline))
            finally:
                self.close()
        return self._final

    def close(self) -> None:
        self._closed = True
        self._end_threads(0.0)
        self._row_lanes.close()
        self._pservers.close()

    def _start_thread(self, loop: Callable[[], None], name: str) -> None:
        def until_closed() -> None:
            try:
                loop()
            except PsrtError:
                if not self._closed:  # calls that `close` cut short are no crash
                    raise

        self._threads.append(start_thread(until_closed, name, self._crashes))

    def _end_threads(self, timeout_s: float) -> None:
        """The sender and the receiver end after the call they are in."""
        self._queue.close()
        self._sent.close()
        for thread in self._threads:
            thread.join(timeout_s)

    def _take_dense(self) -> dict[str, F32]:
        dense, versions = self._snapshots.take()
        self._versions = {**self._versions, **versions}
        return dense

    def _finish_rows(self) -> dict[str, F32]:
        if self._begun is None:
            return {}
        (rows, answer), self._begun = self._begun, None
        with self._metrics.rows_late_s.time():
            versions = answer.wait("pulling rows", self._pservers.call_timeout_s)
        self._versions = {**self._versions, **versions}
        return rows

    def _check(self) -> None:
        """Raise what ended a background thread, or that the communicator was stopped."""
        if isinstance(self._crashes.error, PsrtError):
            raise self._crashes.error
        self._crashes.check()
        if self._closed:
            raise InternalError("the communicator was used after it was stopped")

    # --- the sender thread ------------------------------------------------------------------------

    def _send(self) -> None:
        while (merged := self._queue.take()) is not None:
            self._push(merged)
            self._sent.add(merged.steps)
            if not self._mode.independent_recv_thread:
                self._pull_dense()

    def _push(self, merged: Merged) -> None:
        """To every pserver, also one that gets no gradient: each counts the steps itself."""
        requests = self._pservers.router.requests()
        self._pservers.router.push(requests, merged.gradients(), merged.versions)
        for request in requests:
            request.header.step = merged.steps
        self._pservers.call(Method.PUSH, requests)
        self._metrics.count(merged)

    # --- the receiver thread ----------------------------------------------------------------------

    def _receive(self) -> None:
        while self._sent.wait():
            self._pull_dense()

    def _pull_dense(self) -> None:
        dense = self._snapshots.fill()
        self._snapshots.publish(dense, self._pservers.pull_dense(dense))
        self._metrics.dense_pulls.add()


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), LEAST_S)
