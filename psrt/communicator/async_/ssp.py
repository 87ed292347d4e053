"""Ssp: stale synchronous parallel, async with a limit on how far ahead a trainer may run.

Source: Ho, Cipar, Cui, Lee, Kim, Gibbons, Gibson, Ganger, Xing, "More effective distributed ML via
a stale synchronous parallel parameter server", NIPS 2013.

A trainer's clock counts its steps whose pushes all pservers have answered; the first pserver keeps
the clocks of all. Step i = 0, 1, … computes on parameters pulled when the clock of every other
trainer had reached i - `max_steps_ahead`, so all updates of these steps are in them; newer ones may
be. The wait and the pulls go on beside the step before:

    gate          one thread: waits until the others are far enough, then pulls dense and rows
    rows <ep>     one per pserver, if there are several: carries these pulls
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial

from psrt.communicator.async_.background import Background
from psrt.communicator.async_.dense_pulls import DensePulls
from psrt.communicator.async_.gradient_queue import Merged
from psrt.communicator.async_.merge_queue import MergeQueue
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


def queue_of_ssp(pservers: int) -> MergeQueue:
    """Where the gradients of a trainer wait: each step by itself, as young as can be."""
    return MergeQueue(capacity=1, max_merge=1, linger_s=0.0, pservers=pservers)


class GatedPulls:
    """The `Pulls` of Ssp."""

    def __init__(self, mode: Ssp, pservers: PserverGroup) -> None:
        self._mode, self._pservers = mode, pservers
        self.dense = DensePulls(pservers)
        self._gate = EndpointThreads(pservers.plan.endpoints[:1], "gate", pservers.crashes)
        self._row_lanes = pservers.lanes("rows")
        self._background: Background | None = None
        self._begun: Future[Rows] | None = None
        self._step = 0  # the running one
        self._reached = 0  # own steps in the tables; written by the sender alone
        self._slowest = 0  # the last the gate has heard of the others
        counters = pservers.counters
        self._late_s = counters.timer("rows_late_s", "seconds waiting for the next step's pulls")
        self._gate_s = counters.timer("gate_s", "seconds the pulls waited for slower trainers")

    def start(self, background: Background) -> None:
        self._background = background
        self.dense.pull()

    def begin(self, wanted: Mapping[str, I64]) -> None:
        awaited = max(0, self._step + 1 - self._mode.max_steps_ahead)
        self._begun = self._gate.submit(0, partial(self._pull, awaited, wanted))

    def take(self) -> Rows:
        """Also the dense parameters of the next step are there then."""
        if self._begun is None:
            self.begin({})
        assert self._begun is not None
        assert self._background is not None
        begun, self._begun = self._begun, None
        timeout_s = 2 * self._pservers.call_timeout_s + BACKSTOP_S  # the gate, then the pulls
        with self._late_s.time(), self._pservers.span("wait for rows"):
            pulled = self._background.wait(begun, "waiting for slower trainers", timeout_s)
        self._step += 1
        return pulled

    def along(self, requests: list[Request], push: Merged) -> OnAnswer:
        return lambda versions: self._sent(push.steps)

    def _sent(self, steps: int) -> None:
        if steps:
            self._reached += steps
            self._pservers.meet(CLOCK, self._reached, awaited=0)

    def last(self) -> None:
        self._pservers.meet(CLOCK, FOREVER, awaited=0)

    def close(self) -> None:
        self._gate.close()
        self._row_lanes.close()

    # --- the gate thread --------------------------------------------------------------------------

    def _pull(self, awaited: int, wanted: Mapping[str, I64]) -> Rows:
        if self._slowest < awaited:
            with self._gate_s.time():
                self._slowest = self._pservers.meet(CLOCK, self._reached, awaited)
        dense, requests = self.dense.fill(), self._pservers.router.requests()
        self._pservers.router.pull_dense(requests, dense)
        rows = self._pservers.router.pull_rows(requests, wanted)
        versions = self._pservers.call(Method.PULL, requests, lanes=self._row_lanes)
        self.dense.publish(dense, versions)
        return rows, versions
