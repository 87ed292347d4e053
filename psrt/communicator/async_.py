"""Async: gradients are applied on arrival, nobody waits for anybody.

Parameters come back by threads of their own:

    receiver      pulls all dense parameters once enough gradients were sent
    rows <ep>     one per pserver: pulls the rows of the next step from `begin` on
    pserver <ep>  one per pserver, if there are several: carries the dense pulls
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from psrt.communicator.background import Background
from psrt.communicator.base import Versions
from psrt.communicator.dense_pulls import DensePulls
from psrt.communicator.merge_queue import MergeQueue
from psrt.communicator.pservers import Answer, Pservers
from psrt.core.specs import Async
from psrt.core.types import F32, I64
from psrt.rpc.methods import Method

WAIT_S = 0.010
"""Length of one of the `send_wait_times` waits for more gradients."""


def queue_of(mode: Async) -> MergeQueue:
    """Where the gradients of a trainer wait."""
    return MergeQueue(
        mode.send_queue_size,
        mode.max_merge_var_num,
        mode.send_wait_times * WAIT_S,
        average=mode.merge == "average",
    )


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


class FreePulls:
    """The `Pulls` of Async: parameters as new as can be, never waited for; only rows are."""

    def __init__(self, mode: Async, pservers: Pservers) -> None:
        self._mode, self._pservers = mode, pservers
        self.dense = DensePulls(pservers)
        self._sent = SentCount(mode.min_send_grad_num_before_recv)
        self._row_lanes = pservers.lanes("rows")
        self._begun: tuple[dict[str, F32], Answer] | None = None
        self._late_s = pservers.counters.timer("rows_late_s", "seconds waiting for prefetched rows")

    def start(self, background: Background) -> None:
        self.dense.pull()
        if self._mode.independent_recv_thread:
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

    def sent(self, steps: int) -> None:
        if self._mode.independent_recv_thread:
            self._sent.add(steps)
        elif steps:
            self.dense.pull()

    def last(self) -> None:
        """Nobody waits for this trainer anyway."""

    def close(self) -> None:
        self._sent.close()
        self._row_lanes.close()

    def _receive(self) -> None:
        while self._sent.wait():
            self.dense.pull()
