"""One block of one dense parameter: values, optimizer state, version, lock.

Called from any handler thread. A reader gets a snapshot that never changes; all readers of one
version share it, so T trainers that pull the same round cost one copy.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from psrt.core.specs import DenseTableSpec
from psrt.core.types import F32
from psrt.kernels import dense
from psrt.kernels.initialize import fill_block
from psrt.kernels.rules import rule_of


class DenseTable:
    """`version` counts the updates; it and the values change only under the lock."""

    def __init__(self, spec: DenseTableSpec) -> None:
        self.spec = spec
        self.version = 0
        self._rule = rule_of(spec.optimizer)
        self._lock = threading.Lock()
        self._values: F32 = np.empty(spec.size, np.float32)
        self._state: F32 = np.empty((self._rule.state_vectors, spec.size), np.float32)
        self._state[:] = np.reshape(self._rule.first, (-1, 1))
        self._sum: F32 = np.empty(0, np.float32)
        self._snapshot: F32 | None = None
        fill_block(spec.initializer, spec.seed, spec.offset, self._values)

    @property
    def nbytes(self) -> int:
        """Values and optimizer state."""
        return self._values.nbytes + self._state.nbytes

    def apply(self, gradient: F32, rate: float) -> None:
        """One update by `gradient` (size,)."""
        with self._lock:
            self._update(gradient, rate)

    def apply_mean(self, gradients: Sequence[F32], trainers: int, rate: float) -> None:
        """One update by the sum of `gradients`, in their order, times 1 / `trainers`."""
        with self._lock:
            alone = trainers == 1 and len(gradients) == 1
            mean = gradients[0] if alone else self._mean(gradients, trainers)
            self._update(mean, rate)

    def read(self) -> tuple[F32, int]:
        """Values (size,), read-only, and the version they are of."""
        with self._lock:
            if self._snapshot is None:
                snapshot = np.empty_like(self._values)
                dense.copy(self._values, snapshot)
                snapshot.flags.writeable = False
                self._snapshot = snapshot
            return self._snapshot, self.version

    def _mean(self, gradients: Sequence[F32], trainers: int) -> F32:
        if not len(self._sum):
            self._sum = np.empty_like(self._values)
        dense.copy(gradients[0], self._sum)
        for gradient in gradients[1:]:
            dense.add_(self._sum, gradient)
        dense.scale_(self._sum, 1.0 / trainers)
        return self._sum

    def _update(self, gradient: F32, rate: float) -> None:
        self._snapshot = None
        self.version += 1
        self._rule.update_block(self._values, self._state, gradient, rate, self.version)
