"""Modes whose gradients leave by queues, while the trainer goes on: Async and Ssp.

The training thread copies gradients into a `MergeQueue`, from which a `Sender` pushes them. When
and how parameters come back is the mode's business: its `Pulls`. Threads besides the training
thread:

    sender n      takes merged gradients from the queue and pushes them to all pservers
    push <ep>     carry pushes to several pservers at once
    and those of `Pulls`

A failure in any of them is raised by the next call of the training thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

from psrt.communicator.background import Background
from psrt.communicator.base import Gradient, Gradients, Pulled, Timeline, Versions
from psrt.communicator.dense_pulls import DensePulls
from psrt.communicator.merge_queue import MergeQueue
from psrt.communicator.pservers import Pservers
from psrt.communicator.sender import Sender
from psrt.core.metrics import Registry
from psrt.core.types import F32, I64

LEAST_S = 1.0
"""What a call at the end is given when draining used up the time to stop."""


class Pulls(Protocol):
    """How parameters come back, by calls of the training thread but for `sent`."""

    @property
    def dense(self) -> DensePulls: ...

    def start(self, background: Background) -> None:
        """Pull the first dense parameters; begin whatever goes on in the background."""
        ...

    def begin(self, wanted: Mapping[str, I64]) -> None: ...
    def take(self) -> tuple[dict[str, F32], Versions]:
        """The rows that `begin` announced, and their versions; the running step is over."""
        ...

    def sent(self, steps: int) -> None:
        """Pservers have answered a push of so many steps; by the thread that sent it."""
        ...

    def last(self) -> None:
        """This trainer takes no further step; everything it had is in the tables."""
        ...

    def close(self) -> None: ...


class Queued:
    """A communicator whose steps end when their gradients are queued."""

    def __init__(
        self,
        pservers: Pservers,
        on_wait: Callable[[str], None],
        queue: MergeQueue,
        pulls: Pulls,
        senders: int = 1,
    ) -> None:
        self._pservers, self._on_wait, self._pulls = pservers, on_wait, pulls
        self._background = Background(queue.close)
        self._sender = Sender(pservers, queue, self._background, pulls.sent, senders)
        self._versions: Versions = {}
        self._final: dict[str, F32] | None = None

    @property
    def counters(self) -> Registry:
        return self._pservers.counters

    def watch(self, timeline: Timeline | None) -> None:
        self._pservers.timeline = timeline

    def start(self, timeout_s: float) -> dict[str, F32]:
        self._pservers.connect(timeout_s, self._on_wait)
        self._pulls.start(self._background)
        self._sender.start()
        return self._take_dense()

    def pull_rows(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        self._background.check()
        rows, versions = self._pservers.pull_rows(wanted)
        self._seen(versions)
        return rows

    def begin(self, wanted: Mapping[str, I64]) -> None:
        self._background.check()
        self._pulls.begin(wanted)

    def offer(self, name: str, gradient: Gradient) -> None:
        self._sender.offer(name, gradient, self._versions)

    def finish(self, gradients: Gradients) -> Pulled:
        self._background.check()
        self._sender.put(gradients, self._versions)
        rows, versions = self._pulls.take()
        self._seen(versions)
        return Pulled(self._take_dense(), rows)

    def flush(self, timeout_s: float, final: bool = False) -> dict[str, F32]:
        self._background.check()
        deadline = time.monotonic() + timeout_s
        self._sender.drain(timeout_s)
        if final:
            self._pulls.last()
        return self._pulls.dense.apart(_left(deadline))

    def stop(self, timeout_s: float) -> dict[str, F32]:
        if self._final is None:
            deadline = time.monotonic() + timeout_s
            try:
                self._final = self.flush(timeout_s)
                self._end(_left(deadline))
                self._pservers.complete(_left(deadline))
            finally:
                self.close()
        return self._final

    def close(self) -> None:
        self._background.close()
        self._end(0.0)
        self._pservers.close()

    def _end(self, timeout_s: float) -> None:
        """Background threads end after the call they are in."""
        self._sender.close()
        self._pulls.close()
        self._background.join(timeout_s)

    def _take_dense(self) -> dict[str, F32]:
        dense, versions = self._pulls.dense.take()
        self._seen(versions)
        return dense

    def _seen(self, versions: Versions) -> None:
        """Gradients are computed on these versions from now on."""
        self._versions = {**self._versions, **versions}


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), LEAST_S)
