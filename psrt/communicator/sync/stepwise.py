"""Modes whose step is one call: gradients go up and, in the same call, parameters come down.

`finish` sends the gradients of this step and asks for what the next one needs; the answer is there
when it returns, so nothing is ever queued and each step computes on parameters that contain all of
this trainer's own work. All of it happens in the training thread and one thread per pserver. How
the call travels is the mode's business: a `Turn`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from psrt.communicator.base import Gradient, Gradients, Pulled, Versions
from psrt.communicator.base_communicator import BaseCommunicator
from psrt.communicator.requests import PserverGroup, Request, Snapshots
from psrt.core.types import F32, I64


class Turn(Protocol):
    """How the one call of a step is made."""

    def start(self) -> None:
        """All pservers were reached; the first step is about to begin."""
        ...

    def send(self, requests: list[Request], trained: bool) -> Versions:
        """Send a request to each pserver and wait; `trained` says whether there were gradients."""
        ...


class StepByStep(BaseCommunicator):
    """A communicator without queues."""

    one_call_step = True

    def __init__(self, pservers: PserverGroup, on_wait: Callable[[str], None], turn: Turn) -> None:
        super().__init__(pservers, on_wait)
        self._turn = turn
        self._snapshots = Snapshots(pservers.plan.dense_shapes, keep=1)
        self._wanted: Mapping[str, I64] = {}

    def start(self, timeout_s: float) -> dict[str, F32]:
        self._pservers.connect(timeout_s, self._on_wait)
        self._turn.start()
        dense = self._snapshots.fill()
        return self._hand_out(dense, self._pservers.pull_dense(dense))

    def pull_rows(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        self._check()
        rows, versions = self._pservers.pull_rows(wanted)
        self._versions = {**self._versions, **versions}
        return rows

    def begin(self, wanted: Mapping[str, I64]) -> None:
        """Remembered only: rows of the next step must be read after this step's gradients."""
        self._wanted = wanted

    def finish(self, gradients: Gradients) -> Pulled:
        self._check()
        wanted, self._wanted = self._wanted, {}
        dense = self._snapshots.fill()
        router = self._pservers.router
        requests = router.requests()
        router.push(requests, gradients, self._versions)
        router.pull_dense(requests, dense)
        rows = router.pull_rows(requests, wanted)
        with self._for_good():  # some pservers may have applied the step
            versions = self._turn.send(requests, bool(gradients))
        return Pulled(self._hand_out(dense, versions), rows)

    def offer(self, name: str, gradient: Gradient) -> None:
        """Nothing is sent before the step has ended."""

    def flush(self, timeout_s: float, final: bool = False) -> dict[str, F32]:
        """Nothing is ever queued: the last step is in the tables when `finish` returned."""
        self._check()
        dense = self._snapshots.empty()
        self._pservers.pull_dense(dense, timeout_s)
        return dense

    def _last(self, timeout_s: float) -> dict[str, F32]:
        dense = self.flush(timeout_s)
        self._pservers.complete(timeout_s)
        return dense

    def _hand_out(self, dense: dict[str, F32], versions: Versions) -> dict[str, F32]:
        self._snapshots.publish(dense, versions)
        dense, self._versions = self._snapshots.take()
        return dense
