"""Threads that take queued gradients and push them to the pservers.

With several threads, as many pushes are under way at once, and pservers may apply the pushes of one
trainer in another order than it made them. Each step is counted once either way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias

from psrt.communicator.async_.background import Background
from psrt.communicator.async_.gradient_queue import Merged
from psrt.communicator.async_.merge_queue import MergeQueue
from psrt.communicator.base import Gradient, Gradients, Position, Versions, no_position
from psrt.communicator.requests import BACKSTOP_S, PserverGroup, Request, count_steps
from psrt.core.counters import Counters
from psrt.core.errors import DeadlineError
from psrt.core.tracing import within
from psrt.rpc.methods import Method


class SenderMetrics:
    def __init__(self, counters: Counters) -> None:
        self.steps_sent = counters.counter("steps_sent", "mini-batches whose gradients were pushed")
        self.pushes = counters.counter("pushes", "pushes sent, to all pservers at once")
        self.early = counters.counter("pushes_early", "pushes sent before their step had ended")
        self.merged = counters.counter(
            "gradients_merged", "gradients that these pushes were merged of"
        )
        self.blocked_s = counters.timer("queue_s", "seconds handing over gradients (back-pressure)")

    def count(self, merged: Merged) -> None:
        self.pushes.add()
        self.early.add(int(merged.steps == 0))
        self.steps_sent.add(merged.steps)
        self.merged.add(merged.gradients_merged)


OnAnswer: TypeAlias = Callable[[Versions], None]
"""Called on the sender thread once all pservers have answered a push, with the versions read."""


class Sender:
    """Pushes the gradients of `queue`.

    `before_push` may add to the requests of each push what its answer must bring back, and returns
    the callback for that answer.
    """

    def __init__(
        self,
        pservers: PserverGroup,
        queue: MergeQueue,
        background: Background,
        before_push: Callable[[list[Request], Merged], OnAnswer],
        workers: int = 1,
    ) -> None:
        self._pservers, self._queue, self._background = pservers, queue, background
        self._before_push, self._workers = before_push, workers
        self._threads = pservers.endpoint_threads("push", workers)
        self._metrics = SenderMetrics(pservers.counters)

    def start(self) -> None:
        for number in range(self._workers):
            self._background.start(self._send, f"sender {number}")

    # --- the trainer ------------------------------------------------------------------------------

    def offer(self, name: str, gradient: Gradient, versions: Versions) -> None:
        """Queue a gradient of the running step if there is room for it; any thread may call it."""
        self._queue.offer(name, gradient, versions)

    def put(
        self, gradients: Gradients, versions: Versions, position: Position = no_position
    ) -> None:
        """Queue the rest of a step, waiting for room; the trainer goes on at `position`."""
        place = self._pservers.lineage.position
        # A push that hangs fails within the call timeout, with a better message than a full queue.
        timeout_s = self._pservers.call_timeout_s + BACKSTOP_S
        with self._metrics.blocked_s.time():
            queued = self._queue.put(gradients, versions, timeout_s, position, place)
        if not queued:
            self._background.check()

    def is_at(self, position: Position) -> None:
        """Record where the trainer goes on, without a step in between."""
        self._queue.position, lineage = position, self._pservers.lineage
        self._queue.begin_behind(lineage.begun, lineage.position, lineage.repeated_to)

    def position(self) -> str:
        """Return where the trainer goes on after the last step that was put."""
        return self._queue.position()

    def on_its_way(self) -> tuple[int, int]:
        """Return the gradients that wait, and the ended steps not answered yet."""
        return self._queue.waiting, self._queue.unanswered

    def drain(self, timeout_s: float) -> None:
        """Wait until the pservers have everything that was put; raises `DeadlineError`."""
        if self._queue.drain(timeout_s):
            return
        self._background.check()
        raise DeadlineError(
            f"{self._queue.waiting} queued gradients were not sent within {timeout_s:.1f} s; "
            "they are not in the parameters.",
            hint="Give the trainer more time to stop, or see the logs of the pservers.",
        )

    @contextmanager
    def held(self, timeout_s: float) -> Iterator[str]:
        """Have nothing to send inside the block; yields where the trainer goes on.

        Raises `DeadlineError` if the running step, or the pushes of ended ones, take too long.
        """
        try:
            if not self._queue.pause(timeout_s):
                raise DeadlineError(
                    f"the gradients of ended steps were not sent within {timeout_s:.1f} s, so this "
                    "trainer does not take part in a cut; training goes on."
                )
            yield self._queue.position()
        finally:
            self._queue.resume()

    def close(self) -> None:
        """End each thread after its current push; queued gradients stay in the queue."""
        self._queue.close()
        self._threads.close()

    # --- the sender threads -----------------------------------------------------------------------

    def _send(self) -> None:
        while (merged := self._queue.take()) is not None:
            with within(merged.span):
                self._push(merged)
            self._queue.sent(merged)
            del merged  # its memory is for the gradients that come while this thread waits

    def _push(self, merged: Merged) -> None:
        """Push to pservers that get a gradient, or to all if there are steps to count."""
        requests = self._pservers.router.requests()
        leave_out = partial(self._has, merged)
        self._pservers.router.push(
            requests, merged.gradients(), merged.versions, leave_out=leave_out
        )
        self._count_steps(requests, merged)
        self._pservers.lineage.stamp(requests, merged.settled, merged.covers())
        on_answer = self._before_push(requests, merged)
        versions = self._pservers.call(Method.PUSH, requests, threads=self._threads)
        self._metrics.count(merged)
        on_answer(versions)

    def _has(self, merged: Merged, name: str, endpoint: int, bucket: int) -> bool:
        """True if a former process of this trainer has pushed a gradient to a pserver."""
        lineage = self._pservers.lineage
        return lineage.has(endpoint, bucket, merged.groups[name].first, name)

    def _count_steps(self, requests: list[Request], merged: Merged) -> None:
        """Count the mini-batches that a pserver has not counted yet."""
        count_steps(requests, merged.steps)
        steps = merged.counted, merged.counted + merged.steps - 1
        for request in requests if merged.counted <= self._pservers.lineage.repeated_to else ():
            if request.bucket == 0:
                request.header.step = self._pservers.lineage.uncounted(request.endpoint, steps)
