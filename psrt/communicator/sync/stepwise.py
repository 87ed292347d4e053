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
from functools import partial

from psrt.communicator.base import Gradient, Gradients, Pulled, Versions
from psrt.communicator.base_communicator import BaseCommunicator
from psrt.communicator.requests import PserverGroup, Request, Snapshots
from psrt.communicator.sync.repeated_step import RepeatedStep
from psrt.core.errors import DeadlineError
from psrt.core.tracing import traced
from psrt.core.types import F32, I64


class StepwiseCommunicator(BaseCommunicator):
    """A communicator without queues; modes implement `_send`."""

    one_call_step = True

    def __init__(self, pservers: PserverGroup, on_wait: Callable[[str], None]) -> None:
        super().__init__(pservers, on_wait)
        self._snapshots = Snapshots(pservers.plan.dense_shapes, keep=1)
        self._wanted: Mapping[str, I64] = {}
        self._repeated = RepeatedStep(pservers)
        self._pushing = threading.Lock()  # held from the push of a step to its answer
        self._exchange_s = pservers.counters.timer("exchange_s", "seconds spent in exchanges")

    def start(self, timeout_s: float) -> dict[str, F32]:
        self._connect(timeout_s)
        dense = self._snapshots.fill()
        return self._hand_out(dense, self._pservers.pull_dense(dense))

    def _connect(self, timeout_s: float) -> None:
        super()._connect(timeout_s)
        self._repeated.begin()

    def begin(self, wanted: Mapping[str, I64]) -> None:
        """Store the ids: rows of the next step must be read after this step's gradients."""
        self._wanted = wanted

    @traced("finish")
    def finish(self, gradients: Gradients) -> Pulled:
        self._check()
        wanted, self._wanted = self._wanted, {}
        dense = self._snapshots.fill()
        router = self._pservers.router
        requests = router.requests()
        router.push(requests, gradients, self._versions, leave_out=self._repeated.has)
        router.pull_dense(requests, dense)
        rows = router.pull_rows(requests, wanted)
        # After a failure some pservers may have applied the step.
        with self._pushing, self._permanent_failure(), self._exchange_s.time():
            self._check()  # the wait for a cut may have ended this process's part in the job
            versions = self._repeated.end(requests, partial(self._send, trained=bool(gradients)))
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
        caught_up = self._repeated.caught_up.wait(timeout_s)
        if not caught_up or not self._pushing.acquire(timeout=timeout_s):
            raise DeadlineError(f"a step did not end within {timeout_s:.1f} s; the cut goes on")
        try:
            self._check()  # after a failure some pservers may have a step behind the position
            yield self._position()
        finally:
            self._pushing.release()

    @abstractmethod
    def _send(self, requests: list[Request], trained: bool) -> Versions:
        """Send a request to each pserver and wait; `trained` is False without gradients."""

    def _last(self, timeout_s: float) -> dict[str, F32]:
        dense = self.flush(timeout_s)
        self._cut_watch.close()
        self._complete(timeout_s, self._position())
        return dense

    def _hand_out(self, dense: dict[str, F32], versions: Versions) -> dict[str, F32]:
        self._snapshots.publish(dense, versions)
        dense, self._versions = self._snapshots.take()
        return dense
