"""One block of one dense parameter: values, optimizer state, version, lock.

Called from any handler thread. A reader gets a snapshot that never changes; all readers of one
version share it, and it costs no copy if they are through with it before the next update
(`psrt.pserver.tables.block_values`). How gradients move the block:
`psrt.pserver.tables.block_update`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from psrt.core.specs import DenseTableSpec
from psrt.core.types import F32
from psrt.kernels.optimizers import compensate
from psrt.kernels.tables import fill_block
from psrt.pserver.tables.block_update import BlockUpdate, Source, compensated, mean_of
from psrt.pserver.tables.block_values import BlockValues
from psrt.pserver.tables.pulled import PulledValues
from psrt.pserver.tables.spare_threads import ALONE, SpareThreads


class DenseTable:
    """`version` counts the updates; it and the values change only under the lock.

    `compensation` is the λ of DC-ASGD; above 0 the table remembers what trainers pulled. A
    `spare` thread takes half of an update of a large block.
    """

    def __init__(
        self, spec: DenseTableSpec, compensation: float = 0.0, spare: SpareThreads = ALONE
    ) -> None:
        self.spec = spec
        self.version = 0
        self._move = BlockUpdate(spec, spare)
        self._compensation = compensation
        self._pulled = PulledValues()
        self._lock = threading.Lock()
        self._values = BlockValues(_initial(spec))
        if compensation:
            compensate.load()

    @property
    def nbytes(self) -> int:
        """Values and optimizer state."""
        return 4 * self.spec.size + self._move.nbytes

    def apply(self, gradient: F32, rate: float, trainer: int = 0, version: int = 0) -> None:
        """One update by `gradient` (size,), which `trainer` computed on `version`."""
        with self._lock:
            if self._compensation:
                pulled = self._computed_on(trainer, version)
                self._update(compensated(gradient, pulled, self._compensation), rate)
            else:
                self._update(gradient, rate)

    def apply_mean(self, gradients: Sequence[F32], trainers: int, rate: float) -> None:
        """One update by the sum of `gradients`, in their order, times 1 / `trainers`."""
        with self._lock:
            self._update(mean_of(gradients, trainers), rate)

    def read(self, trainer: int = 0) -> tuple[F32, int]:
        """Values (size,) for `trainer`, read-only, and the version they are of."""
        with self._lock:
            values = self._values.show()
            if self._compensation:
                self._pulled.pulled(trainer, self.version, values)
            return values, self.version

    def release(self, trainer: int) -> None:
        """Let go of what is kept for `trainer`: it pushes nothing more."""
        with self._lock:
            self._pulled.release(trainer)

    def _update(self, source: Source, rate: float) -> None:
        self.version += 1
        self._move(self._values.to_change(), source, rate, self.version)

    def _computed_on(self, trainer: int, version: int) -> F32:
        """The values (size,) that a gradient of `trainer` was computed on."""
        pulled = self._pulled.computed_on(trainer, version)
        # Who never pulled computes on what every process knows.
        return _initial(self.spec) if pulled is None else pulled


def _initial(spec: DenseTableSpec) -> F32:
    values: F32 = np.empty(spec.size, np.float32)
    fill_block(spec.initializer, spec.seed, spec.offset, values)
    return values
