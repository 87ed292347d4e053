"""Sync: one exchange per trainer, pserver and round.

`finish` sends the gradients of this step and, in the same call, asks for what the next step needs;
every pserver answers when the round it belongs to has closed and was applied. So all trainers
compute each step on the same parameters, and the result is that of one process with the big batch.
All work happens in the training thread and one thread per pserver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from psrt.communicator.base import Gradients, Pulled, Versions
from psrt.communicator.pservers import Pservers
from psrt.communicator.router import Request
from psrt.communicator.snapshots import Snapshots
from psrt.core.errors import InternalError, PsrtError
from psrt.core.metrics import Registry
from psrt.core.types import F32, I64
from psrt.rpc.methods import Method


class SyncCommunicator:
    def __init__(self, pservers: Pservers, on_wait: Callable[[str], None]) -> None:
        self._pservers = pservers
        self._on_wait = on_wait
        self._snapshots = Snapshots(pservers.plan.dense_shapes, keep=1)
        self._wanted: Mapping[str, I64] = {}
        self._versions: Versions = {}
        self._open_rounds: list[int] = []
        self._final: dict[str, F32] | None = None
        self._failure: PsrtError | None = None
        self._closed = False
        self._rounds = self.counters.counter(
            "rounds", "synchronous rounds this trainer took part in"
        )
        self._exchanging = self.counters.timer("exchange_s", "seconds spent in rounds")

    @property
    def counters(self) -> Registry:
        return self._pservers.counters

    def start(self, timeout_s: float) -> dict[str, F32]:
        self._pservers.connect(timeout_s, self._on_wait)
        self._open_rounds = self._pservers.open_rounds()
        dense = self._snapshots.fill()
        return self._hand_out(dense, self._pservers.pull_dense(dense))

    def pull_rows(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        self._check()
        rows, versions = self._pservers.pull_rows(wanted)
        self._versions = {**self._versions, **versions}
        return rows

    def begin(self, wanted: Mapping[str, I64]) -> None:
        """Remembered only: rows of the next step must be read after this step's round."""
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
        versions = self._exchange(requests, steps=1 if gradients else 0)
        return Pulled(self._hand_out(dense, versions), rows)

    def flush(self, timeout_s: float) -> dict[str, F32]:
        """Nothing is ever queued: the last round is in the tables when `finish` returned."""
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

    def _exchange(self, requests: list[Request], steps: int) -> Versions:
        """Take part in a round; a failure is final, since other pservers may have closed theirs."""
        for request, open_round in zip(requests, self._open_rounds, strict=True):
            request.header.round, request.header.step = open_round, steps
        try:
            with self._exchanging.time():
                versions = self._pservers.call(Method.EXCHANGE, requests)
        except PsrtError as error:
            self._failure = error
            raise
        self._open_rounds = [open_round + 1 for open_round in self._open_rounds]
        self._rounds.add()
        return versions

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._closed:
            raise InternalError("the communicator was used after it was stopped")

    def _hand_out(self, dense: dict[str, F32], versions: Versions) -> dict[str, F32]:
        self._snapshots.publish(dense, versions)
        dense, self._versions = self._snapshots.take()
        return dense
