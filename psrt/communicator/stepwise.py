"""Modes whose step is one call: gradients go up and, in the same call, parameters come down.

`finish` sends the gradients of this step and asks for what the next one needs; the answer is there
when it returns, so nothing is ever queued and each step computes on parameters that contain all of
this trainer's own work. All of it happens in the training thread and one thread per pserver. How
the call travels is the mode's business: a `Turn`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from psrt.communicator.base import Gradient, Gradients, Pulled, Timeline, Versions
from psrt.communicator.pservers import Pservers
from psrt.communicator.requests import Request
from psrt.communicator.snapshots import Snapshots
from psrt.core.errors import InternalError, PsrtError
from psrt.core.metrics import Registry
from psrt.core.types import F32, I64


class Turn(Protocol):
    """How the one call of a step is made."""

    def start(self) -> None:
        """All pservers were reached; the first step is about to begin."""
        ...

    def send(self, requests: list[Request], trained: bool) -> Versions:
        """Send a request to each pserver and wait; `trained` says whether there were gradients."""
        ...


class StepByStep:
    """A communicator without queues."""

    def __init__(self, pservers: Pservers, on_wait: Callable[[str], None], turn: Turn) -> None:
        self._pservers, self._turn = pservers, turn
        self._on_wait = on_wait
        self._snapshots = Snapshots(pservers.plan.dense_shapes, keep=1)
        self._wanted: Mapping[str, I64] = {}
        self._versions: Versions = {}
        self._final: dict[str, F32] | None = None
        self._failure: PsrtError | None = None
        self._closed = False

    @property
    def counters(self) -> Registry:
        return self._pservers.counters

    def watch(self, timeline: Timeline | None) -> None:
        self._pservers.timeline = timeline

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
        try:
            versions = self._turn.send(requests, bool(gradients))
        except PsrtError as error:
            self._failure = error  # for good: some pservers may have applied the step
            raise
        return Pulled(self._hand_out(dense, versions), rows)

    def offer(self, name: str, gradient: Gradient) -> None:
        """Nothing is sent before the step has ended."""

    def flush(self, timeout_s: float, final: bool = False) -> dict[str, F32]:
        """Nothing is ever queued: the last step is in the tables when `finish` returned."""
        self._check()
        dense = self._snapshots.empty()
        self._pservers.pull_dense(dense, timeout_s)
        return dense

    def stop(self, timeout_s: float) -> dict[str, F32]:
        if self._final is None:
            try:
                self._final = self.flush(timeout_s)
                self._pservers.complete(timeout_s)
            finally:
                self.close()
        return self._final

    def close(self) -> None:
        self._closed = True
        self._pservers.close()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._closed:
            raise InternalError("the communicator was used after it was stopped")

    def _hand_out(self, dense: dict[str, F32], versions: Versions) -> dict[str, F32]:
        self._snapshots.publish(dense, versions)
        dense, self._versions = self._snapshots.take()
        return dense
