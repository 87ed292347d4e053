"""Base of the modes whose step is one call: gradients go up and parameters come back with it.

`finish` sends the gradients of this step and receives what the next step needs. Nothing is queued,
and each step computes on parameters that contain all earlier work of this trainer. The training
thread and one thread for each pserver do all of it.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from psrt.communicator.base import Gradient, Gradients, Pulled, Versions
from psrt.communicator.base_communicator import BaseCommunicator
from psrt.communicator.requests import WHOLE, PserverGroup, Request, Settled, Snapshots
from psrt.core.errors import DeadlineError
from psrt.core.types import F32, I64
from psrt.rpc.methods import Method


class StepwiseCommunicator(BaseCommunicator):
    """A communicator without queues; modes implement `_send`."""

    one_call_step = True

    def __init__(self, pservers: PserverGroup, on_wait: Callable[[str], None]) -> None:
        super().__init__(pservers, on_wait)
        self._snapshots = Snapshots(pservers.plan.dense_shapes, keep=1)
        self._wanted: Mapping[str, I64] = {}
        self._step, self._behind = 0, ""  # the last step of this trainer, and the place behind it
        self._caught_up = threading.Event()  # no pserver has parts of a later step
        self._pushing = threading.Lock()  # held from the push of a step to its answer
        self._exchange_s = pservers.counters.timer("exchange_s", "seconds spent in exchanges")

    def start(self, timeout_s: float) -> dict[str, F32]:
        self._connect(timeout_s)
        dense = self._snapshots.fill()
        return self._hand_out(dense, self._pservers.pull_dense(dense))

    def _connect(self, timeout_s: float) -> None:
        super()._connect(timeout_s)
        lineage = self._pservers.lineage
        self._ended(lineage.begun, lineage.position)

    def begin(self, wanted: Mapping[str, I64]) -> None:
        """Store the ids: rows of the next step must be read after this step's gradients."""
        self._wanted = wanted

    def finish(self, gradients: Gradients) -> Pulled:
        self._check()
        wanted, self._wanted = self._wanted, {}
        dense = self._snapshots.fill()
        router = self._pservers.router
        requests = router.requests()
        router.push(requests, gradients, self._versions, leave_out=self._has)
        router.pull_dense(requests, dense)
        rows = router.pull_rows(requests, wanted)
        # After a failure some pservers may have applied the step.
        with self._pushing, self._permanent_failure(), self._exchange_s.time():
            versions = self._push(requests, bool(gradients))
            self._position = self._next_position
        return Pulled(self._hand_out(dense, versions), rows)

    def offer(self, name: str, gradient: Gradient) -> None:
        """Nothing is sent before the end of the step."""

    def flush(self, timeout_s: float, final: bool = False) -> dict[str, F32]:
        """Pull the dense parameters: nothing is queued, `finish` waits for its step."""
        self._check()
        return self._pservers.pull_all_dense(timeout_s)

    @contextmanager
    def _pushes_held(self, timeout_s: float) -> Iterator[str]:
        if not self._caught_up.wait(timeout_s) or not self._pushing.acquire(timeout=timeout_s):
            raise DeadlineError(f"a step did not end within {timeout_s:.1f} s; the cut goes on")
        try:
            yield self._position()
        finally:
            self._pushing.release()

    @abstractmethod
    def _send(self, requests: list[Request], trained: bool) -> Versions:
        """Send a request to each pserver and wait; `trained` is False without gradients."""

    def _push(self, requests: list[Request], trained: bool) -> Versions:
        """End a step: push it to the pservers that lack it, pull from those that have it."""
        lineage, step = self._pservers.lineage, self._step + 1
        had = [each for each in requests if self._has("", each.endpoint, each.bucket)]
        needed = [each for each in requests if each not in had]
        settled, behind = Settled(self._step, self._behind), lineage.position
        lineage.stamp(needed, settled, {WHOLE: (step, step)}, behind)
        lineage.ended = step
        lineage.stamp_reads(had)
        versions = dict(self._pservers.call(Method.PULL, had)) if had else {}
        versions |= self._send(needed, trained)
        self._ended(step, behind)
        return versions

    def _ended(self, step: int, behind: str) -> None:
        """Record the last step, and where the data go on behind it."""
        self._step, self._behind = step, behind
        self._pservers.lineage.ended = step
        if step >= self._pservers.lineage.repeated_to:
            self._caught_up.set()

    def _has(self, name: str, endpoint: int, bucket: int) -> bool:
        """True if a former process of this trainer has pushed the running step there."""
        return self._pservers.lineage.has(endpoint, bucket, self._step + 1)

    def _last(self, timeout_s: float) -> dict[str, F32]:
        dense = self.flush(timeout_s)
        self._cut_watch.close()
        self._pservers.complete(timeout_s, self._position())
        return dense

    def _hand_out(self, dense: dict[str, F32], versions: Versions) -> dict[str, F32]:
        self._snapshots.publish(dense, versions)
        dense, self._versions = self._snapshots.take()
        return dense
