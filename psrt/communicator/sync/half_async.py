"""HalfAsync: the replicas of one trainer wait for each other, trainers never do.

The executor has averaged the gradients over its replicas when a step ends. They go up in one call
that also brings back what the next step needs, and pservers apply them on arrival. So a trainer's
gradients are never older than the other trainers' work of one of its steps, and a single trainer
gets the bits of Sync.
"""

from __future__ import annotations

from psrt.communicator.base import Versions
from psrt.communicator.requests import PserverGroup, Request, count_steps
from psrt.rpc.methods import Method


class Arrivals:
    """The turns of HalfAsync. Every step counts, also one without gradients."""

    def __init__(self, pservers: PserverGroup) -> None:
        self._pservers = pservers
        counters = pservers.counters
        self._steps = counters.counter("steps_sent", "mini-batches whose gradients were pushed")
        self._exchanging = counters.timer("exchange_s", "seconds spent pushing and pulling")

    def start(self) -> None:
        """Nothing to ask for: a push belongs to no round."""

    def send(self, requests: list[Request], trained: bool) -> Versions:
        count_steps(requests, 1)
        with self._exchanging.time():
            versions = self._pservers.call(Method.PUSH, requests)
        self._steps.add()
        return versions
