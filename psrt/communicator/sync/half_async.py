"""HalfAsync: the replicas of one trainer wait for each other, trainers never do.

The executor has averaged the gradients over its replicas at the end of a step. One call pushes them
and pulls what the next step needs; pservers apply them on arrival. So a trainer's gradients lag by
at most what the other trainers do in one of its steps, and a single trainer computes the bits of
Sync.
"""

from __future__ import annotations

from collections.abc import Callable

from psrt.communicator.base import Versions
from psrt.communicator.requests import PserverGroup, Request, count_steps
from psrt.communicator.sync.stepwise import StepwiseCommunicator
from psrt.rpc.methods import Method


class HalfAsyncCommunicator(StepwiseCommunicator):
    """Counts every step, also one without gradients."""

    def __init__(self, pservers: PserverGroup, on_wait: Callable[[str], None]) -> None:
        super().__init__(pservers, on_wait)
        self._steps = self.counters.counter(
            "steps_sent", "mini-batches whose gradients were pushed"
        )

    def _send(self, requests: list[Request], trained: bool) -> Versions:
        count_steps(requests, 1)
        versions = self._pservers.call(Method.PUSH, requests)
        self._steps.add()
        return versions
