"""Sync: one exchange per trainer, pserver and round.

A pserver answers after it has closed and applied the round of a trainer's gradients. So all
trainers compute each step on equal parameters, and the result is that of one process with the big
batch.
"""

from __future__ import annotations

from collections.abc import Callable

from psrt.communicator.base import Gradients, Pulled, Versions
from psrt.communicator.requests import PserverGroup, Request
from psrt.communicator.sync.stepwise import StepwiseCommunicator
from psrt.rpc.methods import Method


class SyncCommunicator(StepwiseCommunicator):
    """A step without gradients keeps a round going and is not counted in its mean."""

    _watches_cuts = False

    def __init__(self, pservers: PserverGroup, on_wait: Callable[[str], None]) -> None:
        super().__init__(pservers, on_wait)
        self._open_rounds: list[dict[int, int]] = []
        pservers.lineage.keeps_reads = len(pservers.router.buckets) > 1
        self._cut = 0  # the newest that this trainer took part in
        self._rounds = self.counters.counter(
            "rounds", "synchronous rounds this trainer took part in"
        )

    def finish(self, gradients: Gradients) -> Pulled:
        pulled = super().finish(gradients)
        if self._pservers.proposed_cut > self._cut:
            self._cut = self._pservers.proposed_cut
            self._take_part(self._cut)
        return pulled

    def _connect(self, timeout_s: float) -> None:
        super()._connect(timeout_s)
        self._open_rounds = self._pservers.open_rounds()

    def _send(self, requests: list[Request], trained: bool) -> Versions:
        for request in requests:
            open_rounds = self._open_rounds[request.endpoint]
            request.header.round = open_rounds.get(request.bucket, 0)
            request.header.step = int(trained)
            open_rounds[request.bucket] = request.header.round + 1
        # A restarted trainer may find some buckets a round further than others. Calls for earlier
        # rounds go first: otherwise they would queue behind calls that wait for them.
        in_order = sorted(requests, key=lambda request: request.header.round)
        versions = self._pservers.call(Method.EXCHANGE, in_order)
        self._rounds.add()
        return versions
