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

from psrt.communicator.async_.background import Background
from psrt.communicator.async_.dense_pulls import DensePulls
from psrt.communicator.async_.gradient_queue import Merged
from psrt.communicator.async_.merge_queue import MergeQueue
from psrt.communicator.async_.sender import OnAnswer, Sender
from psrt.communicator.base import Gradient, Gradients, Pulled, Versions
from psrt.communicator.base_communicator import BaseCommunicator, time_left
from psrt.communicator.requests import PserverGroup, Request
from psrt.core.types import F32, I64


class Pulls(Protocol):
    """How parameters come back, by calls of the training thread but for `along`."""

    @property
    def dense(self) -> DensePulls: ...

    def start(self, background: Background) -> None:
        """Pull the first dense parameters; begin whatever goes on in the background."""
        ...

    def begin(self, wanted: Mapping[str, I64]) -> None: ...
    def take(self) -> tuple[dict[str, F32], Versions]:
        """The rows that `begin` announced, and their versions; the running step is over."""
        ...

    def along(self, requests: list[Request], push: Merged) -> OnAnswer:
        """A push is about to leave by `requests`, which may ask for something to come back with
        its answer; by the thread that sends it, as is what hears of that answer."""
        ...

    def last(self) -> None:
        """This trainer takes no further step; everything it had is in the tables."""
        ...

    def close(self) -> None: ...


class Queued(BaseCommunicator):
    """A communicator whose steps end when their gradients are queued."""

    def __init__(
        self,
        pservers: PserverGroup,
        on_wait: Callable[[str], None],
        queue: MergeQueue,
        pulls: Pulls,
        senders: int = 1,
    ) -> None:
        super().__init__(pservers, on_wait)
        self._pulls = pulls
        self._background = Background(queue.close)
        self._sender = Sender(pservers, queue, self._background, pulls.along, senders)

    def start(self, timeout_s: float) -> dict[str, F32]:
        self._pservers.connect(timeout_s, self._on_wait)
        self._pulls.start(self._background)
        self._sender.start()
        return self._take_dense()

    def pull_rows(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        self._check()
        rows, versions = self._pservers.pull_rows(wanted)
        self._seen(versions)
        return rows

    def begin(self, wanted: Mapping[str, I64]) -> None:
        self._check()
        self._pulls.begin(wanted)

    def offer(self, name: str, gradient: Gradient) -> None:
        self._sender.offer(name, gradient, self._versions)

    def finish(self, gradients: Gradients) -> Pulled:
        self._check()
        self._sender.put(gradients, self._versions)
        rows, versions = self._pulls.take()
        self._seen(versions)
        return Pulled(self._take_dense(), rows)

    def flush(self, timeout_s: float, final: bool = False) -> dict[str, F32]:
        self._check()
        deadline = time.monotonic() + timeout_s
        self._sender.drain(timeout_s)
        if final:
            self._pulls.last()
        return self._pulls.dense.apart(time_left(deadline))

    def close(self) -> None:
        self._background.close()
        self._end(0.0)
        super().close()

    def _last(self, timeout_s: float) -> dict[str, F32]:
        deadline = time.monotonic() + timeout_s
        dense = self.flush(timeout_s)
        self._end(time_left(deadline))
        self._pservers.complete(time_left(deadline))
        return dense

    def _check(self) -> None:
        """Also what ended a thread."""
        self._background.check()

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
