"""What takes queued gradients and pushes them to the pservers: one thread or several.

With several, as many pushes are under way at once, and pservers may apply those of one trainer in
another order than it made them. Each step is counted once either way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from psrt.communicator.async_.background import Background
from psrt.communicator.async_.gradient_queue import Merged
from psrt.communicator.async_.merge_queue import MergeQueue
from psrt.communicator.base import Gradient, Gradients, Versions
from psrt.communicator.requests import BACKSTOP_S, PserverGroup, Request, count_steps
from psrt.core.counters import Counters
from psrt.core.errors import DeadlineError
from psrt.rpc.methods import Method


class SenderMetrics:
    def __init__(self, counters: Counters) -> None:
        self.steps_sent = counters.counter("steps_sent", "mini-batches whose gradients were pushed")
        self.pushes = counters.counter("pushes", "pushes sent, to all pservers at once")
        self.early = counters.counter("pushes_early", "pushes sent before their step had ended")
        self.merged = counters.counter("gradients_merged", "gradients that pushes stood for")
        self.blocked_s = counters.timer("queue_s", "seconds handing over gradients (back-pressure)")

    def count(self, merged: Merged) -> None:
        self.pushes.add()
        self.early.add(int(merged.steps == 0))
        self.steps_sent.add(merged.steps)
        self.merged.add(merged.gradients_merged)


OnAnswer: TypeAlias = Callable[[Versions], None]
"""Hears of a push that all pservers have answered, and of the versions that were read by it; by the
thread that sent it."""


class Sender:
    """Sends what is in `queue`.

    `along` hears of each push before it leaves, and may add to its requests what is to come back
    with the answer.
    """

    def __init__(
        self,
        pservers: PserverGroup,
        queue: MergeQueue,
        background: Background,
        along: Callable[[list[Request], Merged], OnAnswer],
        workers: int = 1,
    ) -> None:
        self._pservers, self._queue, self._background = pservers, queue, background
        self._along, self._workers = along, workers
        self._lanes = pservers.lanes("push", workers)
        self._metrics = SenderMetrics(pservers.counters)

    def start(self) -> None:
        for number in range(self._workers):
            self._background.start(self._send, f"sender {number}")

    # --- the trainer ------------------------------------------------------------------------------

    def offer(self, name: str, gradient: Gradient, versions: Versions) -> None:
        """Queue a gradient of the running step, if there is room for it; by any thread."""
        self._queue.offer(name, gradient, versions)

    def put(self, gradients: Gradients, versions: Versions) -> None:
        """Queue the rest of a step, waiting for room."""
        # A push that hangs fails by itself within the call timeout and says more than a full queue.
        timeout_s = self._pservers.call_timeout_s + BACKSTOP_S
        with self._metrics.blocked_s.time():
            queued = self._queue.put(gradients, versions, timeout_s)
        if not queued:
            self._background.check()

    def drain(self, timeout_s: float) -> None:
        """Wait until the pservers have everything that was put."""
        if self._queue.drain(timeout_s):
            return
        self._background.check()
        raise DeadlineError(
            f"{self._queue.waiting} queued gradients were not sent within {timeout_s:.1f} s; "
            "they are not in the parameters.",
            hint="Give the trainer more time to stop, or see the logs of the pservers.",
        )

    def close(self) -> None:
        """Threads end after the push they are in; what is still queued stays there."""
        self._queue.close()
        self._lanes.close()

    # --- the sender threads -----------------------------------------------------------------------

    def _send(self) -> None:
        while (merged := self._queue.take()) is not None:
            self._push(merged)
            self._queue.sent(merged)

    def _push(self, merged: Merged) -> None:
        """To pservers that get a gradient; to all if it stands for steps: each counts them."""
        requests = self._pservers.router.requests()
        self._pservers.router.push(requests, merged.gradients(), merged.versions)
        count_steps(requests, merged.steps)
        answered = self._along(requests, merged)
        versions = self._pservers.call(Method.PUSH, requests, lanes=self._lanes)
        self._metrics.count(merged)
        answered(versions)
