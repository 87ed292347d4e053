"""Ssp: stale synchronous parallel, async with a limit on how far ahead a trainer may run.

Source: Ho, Cipar, Cui, Lee, Kim, Gibbons, Gibson, Ganger, Xing, "More effective distributed ML via
a stale synchronous parallel parameter server", NIPS 2013.

A trainer's clock counts its steps whose pushes all pservers have answered; the first pserver keeps
the clocks of all. Step i = 0, 1, … computes on parameters pulled when the clock of every other
trainer had reached i - `max_steps_ahead`, so they contain all updates of these steps, and perhaps
newer ones. A process that replaces another counts on from where the first pserver says. The wait
and the pulls run during the step before:

    gate          one thread: waits for slower trainers, then pulls dense parameters and rows
    rows <ep>     one per pserver, if there are several: carries these pulls
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial

from psrt.communicator.async_.gradient_queue import Merged
from psrt.communicator.async_.merge_queue import MergeQueue
from psrt.communicator.async_.queued import QueuedCommunicator
from psrt.communicator.async_.sender import OnAnswer
from psrt.communicator.base import Versions
from psrt.communicator.requests import BACKSTOP_S, EndpointThreads, PserverGroup, Request
from psrt.core.specs import Ssp
from psrt.core.types import F32, I64
from psrt.rpc.methods import Method

CLOCK = "step"
FOREVER = (1 << 64) - 1
"""The time of a trainer that takes no further step."""

Rows = tuple[dict[str, F32], Versions]


class SspCommunicator(QueuedCommunicator):
    """Pushes each step by itself, at once, and gates the pulls of the next one."""

    def __init__(
        self, mode: Ssp, pservers: PserverGroup, on_wait: Callable[[str], None], given: bool = False
    ) -> None:
        endpoints = pservers.plan.endpoints
        copies = None if given else pservers.copies
        queue = MergeQueue(1, max_merge=1, linger_s=0.0, pservers=len(endpoints), copies=copies)
        super().__init__(pservers, on_wait, queue)
        self._mode = mode
        self._gate = EndpointThreads(endpoints[:1], "gate", pservers.crashes)
        self._gated: Future[Rows] | None = None
        self._step = 0  # the running one
        self._reached = 0  # own steps in the tables; written by the sender alone
        self._slowest = 0  # the clock of the slowest other trainer at the last MEET
        self._gate_s = pservers.counters.timer(
            "gate_s", "seconds the pulls waited for slower trainers"
        )

    def _connect(self, timeout_s: float) -> None:
        super()._connect(timeout_s)
        # Steps that are computed again are in the predecessor's clock already.
        begin = self._pservers.begin_clock(CLOCK) - self._pservers.lineage.counted_everywhere()
        self._step = self._reached = max(0, begin)

    def begin(self, wanted: Mapping[str, I64]) -> None:
        self._check()
        awaited = max(0, self._step + 1 - self._mode.max_steps_ahead)
        self._gated = self._gate.submit(0, partial(self._pull_next, awaited, wanted))

    def _take_rows(self) -> Rows:
        """Also waits for the dense parameters of the next step."""
        if self._gated is None:
            self.begin({})
        assert self._gated is not None
        gated, self._gated = self._gated, None
        timeout_s = 2 * self._pservers.call_timeout_s + BACKSTOP_S  # the gate, then the pulls
        with self._late_s.time(), self._pservers.span("wait for rows"):
            pulled = self._background.wait(gated, "waiting for slower trainers", timeout_s)
        self._step += 1
        return pulled

    def _before_push(self, requests: list[Request], push: Merged) -> OnAnswer:
        return lambda versions: self._count(push.steps)

    def _count(self, steps: int) -> None:
        if steps:
            self._reached += steps
            self._pservers.meet(CLOCK, self._reached, awaited=0)

    def _trained(self) -> None:
        self._pservers.meet(CLOCK, FOREVER, awaited=0)

    def _end(self, timeout_s: float) -> None:
        self._gate.close()
        super()._end(timeout_s)

    def _pull_next(self, awaited: int, wanted: Mapping[str, I64]) -> Rows:
        """On the gate thread: wait for the other trainers, then pull for the next step."""
        if self._slowest < awaited:
            with self._gate_s.time():
                self._slowest = self._pservers.meet(CLOCK, self._reached, awaited)
        dense, requests = self._snapshots.fill(), self._pservers.router.requests()
        self._pservers.router.pull_dense(requests, dense)
        rows = self._pservers.router.pull_rows(requests, wanted)
        versions = self._pservers.call(Method.PULL, requests, threads=self._row_threads)
        self._publish(dense, versions)
        return rows, versions
