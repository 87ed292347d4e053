"""Buffers that receive whole dense parameters.

One thread fills and publishes, the training thread takes. A set of arrays is in one of these
places, in this order: free → filling → newest (published, not taken) → held (taken) → free. A held
set stays unchanged until `keep` newer ones were taken, so a trainer can read a parameter in place
while the next one arrives. Sets are allocated on first use and then reused: at most `keep` + 2
exist.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping

import numpy as np

from psrt.communicator.base import Versions
from psrt.core.types import F32, Shape

Dense = dict[str, F32]


def empty_dense(shapes: Mapping[str, Shape]) -> Dense:
    """A new set of uninitialised arrays."""
    return {name: np.empty(shape, np.float32) for name, shape in shapes.items()}


class Snapshots:
    """The sets of one communicator."""

    def __init__(self, shapes: Mapping[str, Shape], keep: int) -> None:
        self._shapes = dict(shapes)
        self._keep = keep
        self._lock = threading.Lock()
        self._free: list[Dense] = []
        self._held: deque[Dense] = deque()
        self._newest: tuple[Dense, Versions] | None = None

    def fill(self) -> Dense:
        """A set to write into; pass it to `publish` afterwards."""
        with self._lock:
            return self._free.pop() if self._free else empty_dense(self._shapes)

    def publish(self, dense: Dense, versions: Versions) -> None:
        """Make a filled set the newest; one that was never taken becomes free."""
        with self._lock:
            if self._newest is not None:
                self._free.append(self._newest[0])
            self._newest = dense, versions

    def take(self) -> tuple[Dense, Versions]:
        """The newest set, once; empty if it was taken before."""
        with self._lock:
            if self._newest is None:
                return {}, {}
            (dense, versions), self._newest = self._newest, None
            self._held.append(dense)
            if len(self._held) > self._keep:
                self._free.append(self._held.popleft())
            return dict(dense), versions
