"""Sync: one exchange per trainer, pserver and round.

Every pserver answers when the round that a trainer's gradients belong to has closed and was
applied. So all trainers compute each step on the same parameters, and the result is that of one
process with the big batch.
"""

from __future__ import annotations

from psrt.communicator.base import Versions
from psrt.communicator.requests import PserverGroup, Request
from psrt.rpc.methods import Method


class SyncTurns:
    """The turns of Sync. A step without gradients keeps a round going and does not count in it."""

    def __init__(self, pservers: PserverGroup) -> None:
        self._pservers = pservers
        self._open: list[dict[int, int]] = []
        counters = pservers.counters
        self._rounds = counters.counter("rounds", "synchronous rounds this trainer took part in")
        self._exchanging = counters.timer("exchange_s", "seconds spent in rounds")

    def start(self) -> None:
        self._open = self._pservers.open_rounds()

    def send(self, requests: list[Request], trained: bool) -> Versions:
        for request in requests:
            open_rounds = self._open[request.endpoint]
            request.header.round = open_rounds.get(request.section, 0)
            request.header.step = int(trained)
            open_rounds[request.section] = request.header.round + 1
        # A process that took a place may have found some sections a round further than others.
        # Calls for earlier rounds go first: they would queue behind calls that wait for them.
        in_order = sorted(requests, key=lambda request: request.header.round)
        with self._exchanging.time():
            versions = self._pservers.call(Method.EXCHANGE, in_order)
        self._rounds.add()
        return versions
