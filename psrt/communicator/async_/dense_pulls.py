"""Whole dense parameters on their way from the pservers to the training thread."""

from __future__ import annotations

from psrt.communicator.base import Versions
from psrt.communicator.requests import PserverGroup, Snapshots
from psrt.core.types import F32


class DensePulls:
    """One thread pulls, the training thread takes; a set that was handed out stays for two more."""

    def __init__(self, pservers: PserverGroup) -> None:
        self._pservers = pservers
        self._snapshots = Snapshots(pservers.plan.dense_shapes, keep=2)
        self._count = pservers.counters.counter("dense_pulls", "pulls of all dense parameters")

    def pull(self) -> None:
        """Pull all parameters now; `take` finds them."""
        dense = self.fill()
        self.publish(dense, self._pservers.pull_dense(dense, exact=False))

    def fill(self) -> dict[str, F32]:
        """Arrays to pull into; ends in `publish`."""
        return self._snapshots.fill()

    def publish(self, dense: dict[str, F32], versions: Versions) -> None:
        self._snapshots.publish(dense, versions)
        self._count.add()

    def take(self) -> tuple[dict[str, F32], Versions]:
        """The newest set and its versions, once; empty when it was taken before."""
        return self._snapshots.take()

    def apart(self, timeout_s: float) -> dict[str, F32]:
        """A set of its own that nobody overwrites."""
        dense = self._snapshots.empty()
        self._pservers.pull_dense(dense, timeout_s)
        return dense
