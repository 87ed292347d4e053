"""Base of the modes that queue gradients and push them while the trainer goes on: Async and Ssp.

The training thread copies gradients into a `MergeQueue`, from which a `Sender` pushes them. The
modes differ in how parameters come back. Threads besides the training thread:

    sender n      takes merged gradients from the queue and pushes them to all pservers
    push <ep>     one or more per pserver: carry pushes to several pservers in parallel
    rows <ep>     one or more per pserver: carry the pulls of the next step

The next call of the training thread raises a failure of any of them.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager

from psrt.communicator.async_.background import Background
from psrt.communicator.async_.gradient_queue import Merged
from psrt.communicator.async_.merge_queue import MergeQueue
from psrt.communicator.async_.sender import OnAnswer, Sender
from psrt.communicator.base import Gradient, Gradients, Position, Pulled, Versions
from psrt.communicator.base_communicator import BaseCommunicator, time_left
from psrt.communicator.requests import PserverGroup, Request, Snapshots
from psrt.core.tracing import traced
from psrt.core.types import F32


class QueuedCommunicator(BaseCommunicator):
    """A communicator whose steps end when their gradients are queued.

    Dense parameters that were handed out stay unchanged until two newer sets were.
    """

    def __init__(
        self,
        pservers: PserverGroup,
        on_wait: Callable[[str], None],
        queue: MergeQueue,
        senders: int = 1,
    ) -> None:
        super().__init__(pservers, on_wait)
        self._snapshots = Snapshots(pservers.plan.dense_shapes, keep=2)
        self._background = Background(queue.close)
        self._sender = Sender(pservers, queue, self._background, self._before_push, senders)
        self._row_threads = pservers.endpoint_threads("rows")
        counters = pservers.counters
        self._dense_pulls = counters.counter("dense_pulls", "pulls of all dense parameters")
        self._late_s = counters.timer("rows_late_s", "seconds waiting for the next step's rows")

    def start(self, timeout_s: float) -> dict[str, F32]:
        self._connect(timeout_s)
        self._pull_dense()
        self._start_threads()
        return self._take_dense()

    def offer(self, name: str, gradient: Gradient) -> None:
        self._sender.offer(name, gradient, self._versions)

    @traced("finish")
    def finish(self, gradients: Gradients) -> Pulled:
        self._check()
        self._sender.put(gradients, self._versions, self._next_position)
        rows, versions = self._take_rows()
        self._pulled(versions)
        return Pulled(self._take_dense(), rows)

    def flush(self, timeout_s: float, final: bool = False) -> dict[str, F32]:
        self._check()
        deadline = time.monotonic() + timeout_s
        self._sender.drain(timeout_s)
        if final:
            self._trained()
        return self._pservers.pull_all_dense(time_left(deadline))

    def _on_its_way(self) -> tuple[int, int]:
        return self._sender.on_its_way()

    def close(self) -> None:
        self._background.close()
        self._end(0.0)
        super().close()

    def _is_at(self, position: Position) -> None:
        super()._is_at(position)
        self._sender.is_at(position)

    def _pushes_held(self, timeout_s: float) -> AbstractContextManager[str]:
        return self._sender.held(timeout_s)

    @abstractmethod
    def _take_rows(self) -> tuple[dict[str, F32], Versions]:
        """Rows of the ids given to `begin`, and their versions; the running step is over."""

    @abstractmethod
    def _before_push(self, requests: list[Request], push: Merged) -> OnAnswer:
        """Add to `requests` what the answer of a push must bring back.

        The sender calls this before the push, and the result after the answer.
        """

    def _trained(self) -> None:
        """This trainer takes no further step; all its gradients are in the tables."""

    def _start_threads(self) -> None:
        self._sender.start()

    def _last(self, timeout_s: float) -> dict[str, F32]:
        deadline = time.monotonic() + timeout_s
        dense = self.flush(timeout_s)
        self._end(time_left(deadline))
        self._cut_watch.close()
        self._complete(time_left(deadline), self._sender.position())
        return dense

    def _resized(self, trainers: int, number: int) -> None:
        super()._resized(trainers, number)
        assert self._failure is not None
        self._background.end(self._failure)

    def _check(self) -> None:
        """Raise what ended a thread, or `InternalError` after `close`."""
        self._background.check()

    def _end(self, timeout_s: float) -> None:
        """End each background thread after its current call."""
        self._sender.close()
        self._row_threads.close()
        self._background.join(timeout_s)

    def _pull_dense(self) -> None:
        dense = self._snapshots.fill()
        self._publish(dense, self._pservers.pull_dense(dense, exact=False))

    def _publish(self, dense: dict[str, F32], versions: Versions) -> None:
        self._snapshots.publish(dense, versions)
        self._dense_pulls.add()

    def _take_dense(self) -> dict[str, F32]:
        dense, versions = self._snapshots.take()
        self._pulled(versions)
        return dense
