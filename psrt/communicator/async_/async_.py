"""Async: gradients are applied on arrival, nobody waits for anybody.

Parameters come back by other threads than the training thread:

    sender n      asks for all dense parameters by a push, once enough gradients were sent
    receiver      pulls them beside pushes that wait for each other, if they are large
    rows <ep>     one per pserver: pulls the rows of the next step from `begin` on
    pserver <ep>  one per pserver, if there are several: carries the receiver's pulls
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from functools import partial

from psrt.communicator.async_.background import Background
from psrt.communicator.async_.dense_pulls import DensePulls
from psrt.communicator.async_.gradient_queue import Merged
from psrt.communicator.async_.merge_queue import MergeQueue
from psrt.communicator.async_.sender import OnAnswer
from psrt.communicator.base import Versions
from psrt.communicator.requests import PendingCalls, PserverGroup, Request
from psrt.core.specs import Async
from psrt.core.types import F32, I64
from psrt.rpc.methods import Method

WAIT_S = 0.010
"""Length of one of the `send_wait_times` waits for more gradients."""

LARGE_BYTES = 4 << 20
"""Dense parameters of so much for each pserver, on the average, hold up no push.

Fewer come with the answer of a push, always: a call of their own costs trainer and pserver 0.4 ms
of CPU time, and threads to wake. In W1 (1 MB for each of 2 pservers) that and one push instead of
two a step take 20 % less CPU time for communication, 12.2 ms instead of 15.5.
"""


def queue_of(mode: Async, pservers: int) -> MergeQueue:
    """Where the gradients of a trainer wait."""
    return MergeQueue(
        mode.send_queue_size,
        mode.max_merge_var_num,
        mode.send_wait_times * WAIT_S,
        average=mode.merge == "average",
        pservers=pservers,
    )


class DueDense:
    """When dense parameters are to come back: once `enough` steps were sent since they did.

    One pull of them is under way at most. It rides on the push that makes it due, or the receiver
    makes it.
    """

    def __init__(self, enough: int) -> None:
        self._enough = enough
        self._changed = threading.Condition()
        self._sent = 0
        self._is_under_way = False
        self._closed = False

    def rides(self, steps: int) -> bool:
        """Whether a push of `steps` is to bring them; `came` says that it has."""
        with self._changed:
            if self._is_under_way or self._sent + steps < self._enough:
                return False
            self._begin()
            return True

    def sent(self, steps: int) -> None:
        """A push that did not bring them was answered."""
        with self._changed:
            self._sent += steps
            self._changed.notify_all()

    def came(self) -> None:
        with self._changed:
            self._is_under_way = False
            self._changed.notify_all()

    def wait(self) -> bool:
        """For the receiver: True when they are due, False when closed; no deadline."""
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


class FreePulls:
    """The `Pulls` of Async: parameters as new as can be, never waited for; only rows are."""

    def __init__(self, mode: Async, pservers: PserverGroup) -> None:
        self._pservers = pservers
        self.dense = DensePulls(pservers)
        size_bytes = sum(4 * math.prod(shape) for shape in pservers.plan.dense_shapes.values())
        is_large = size_bytes >= LARGE_BYTES * len(pservers.plan.endpoints)
        self._has_receiver = mode.independent_recv_thread and is_large
        self._due = DueDense(
            mode.min_send_grad_num_before_recv if mode.independent_recv_thread else 1
        )
        self._row_lanes = pservers.lanes("rows")
        self._begun: tuple[dict[str, F32], PendingCalls] | None = None
        self._late_s = pservers.counters.timer("rows_late_s", "seconds waiting for prefetched rows")

    def start(self, background: Background) -> None:
        self.dense.pull()
        if self._has_receiver:
            background.start(self._receive, "receiver")

    def begin(self, wanted: Mapping[str, I64]) -> None:
        requests = self._pservers.router.requests()
        rows = self._pservers.router.pull_rows(requests, wanted)
        timeout_s = self._pservers.call_timeout_s
        answer = self._pservers.submit(self._row_lanes, Method.PULL, requests, timeout_s)
        self._begun = rows, answer

    def take(self) -> tuple[dict[str, F32], Versions]:
        if self._begun is None:
            return {}, {}
        (rows, answer), self._begun = self._begun, None
        with self._late_s.time(), self._pservers.span("wait for rows"):
            return rows, answer.wait("pulling rows", self._pservers.call_timeout_s)

    def along(self, requests: list[Request], push: Merged) -> OnAnswer:
        """Dense parameters that are due come with the answer of a push. Large ones do not if pushes
        wait for each other, which they would hold up: then the receiver pulls them, beside."""
        is_apart = push.is_late and self._has_receiver
        if is_apart or not self._due.rides(push.steps):
            return lambda versions: self._due.sent(push.steps)
        dense = self.dense.fill()
        self._pservers.router.pull_dense(requests, dense)
        return partial(self._came, dense)

    def _came(self, dense: dict[str, F32], versions: Versions) -> None:
        self.dense.publish(dense, versions)
        self._due.came()

    def last(self) -> None:
        """Nobody waits for this trainer anyway."""

    def close(self) -> None:
        self._due.close()
        self._row_lanes.close()

    def _receive(self) -> None:
        while self._due.wait():
            self.dense.pull()
            self._due.came()
