"""One block of one dense parameter: values, optimizer state, version, lock.

Called from any handler thread. A reader gets a snapshot that never changes; all readers of one
version share it, so T trainers that pull the same round cost one copy. What is done to a gradient
before the optimizer sees it (mean of a round, delay compensation, decay) happens in one scratch
array of the table.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from psrt.core.specs import DenseTableSpec
from psrt.core.types import F32
from psrt.kernels import dense
from psrt.kernels.decay import compensate, decay_of
from psrt.kernels.initialize import fill_block
from psrt.kernels.rules import rule_of
from psrt.pserver.pulled import PulledValues


class DenseTable:
    """`version` counts the updates; it and the values change only under the lock.

    `compensation` is the λ of DC-ASGD; above 0 the table remembers what trainers pulled.
    """

    def __init__(self, spec: DenseTableSpec, compensation: float = 0.0) -> None:
        self.spec = spec
        self.version = 0
        self._rule = rule_of(spec.optimizer)
        self._decay = decay_of(spec.regularizer)
        self._compensation = compensation
        self._pulled = PulledValues()
        self._lock = threading.Lock()
        self._values = _initial(spec)
        self._state: F32 = np.empty((self._rule.state_vectors, spec.size), np.float32)
        self._state[:] = np.reshape(self._rule.first, (-1, 1))
        self._scratch: F32 = np.empty(0, np.float32)
        self._snapshot: F32 | None = None
        if compensation:
            compensate.load()

    @property
    def nbytes(self) -> int:
        """Values and optimizer state."""
        return self._values.nbytes + self._state.nbytes

    def apply(self, gradient: F32, rate: float, trainer: int = 0, version: int = 0) -> None:
        """One update by `gradient` (size,), which `trainer` computed on `version`."""
        with self._lock:
            if self._compensation:
                gradient = self._compensated(gradient, trainer, version)
            self._update(gradient, rate)

    def apply_mean(self, gradients: Sequence[F32], trainers: int, rate: float) -> None:
        """One update by the sum of `gradients`, in their order, times 1 / `trainers`."""
        with self._lock:
            alone = trainers == 1 and len(gradients) == 1
            mean = gradients[0] if alone else self._mean(gradients, trainers)
            self._update(mean, rate)

    def read(self, trainer: int = 0) -> tuple[F32, int]:
        """Values (size,) for `trainer`, read-only, and the version they are of."""
        with self._lock:
            if self._snapshot is None:
                snapshot = np.empty_like(self._values)
                dense.copy(self._values, snapshot)
                snapshot.flags.writeable = False
                self._snapshot = snapshot
            if self._compensation:
                self._pulled.pulled(trainer, self.version, self._snapshot)
            return self._snapshot, self.version

    def release(self, trainer: int) -> None:
        """Let go of what is kept for `trainer`: it pushes nothing more."""
        with self._lock:
            self._pulled.release(trainer)

    def _mean(self, gradients: Sequence[F32], trainers: int) -> F32:
        mean = self._own()
        dense.copy(gradients[0], mean)
        for gradient in gradients[1:]:
            dense.add_(mean, gradient)
        dense.scale_(mean, 1.0 / trainers)
        return mean

    def _compensated(self, gradient: F32, trainer: int, version: int) -> F32:
        """`gradient` as it would about be if it had been computed on the values of now."""
        pulled = self._pulled.computed_on(trainer, version)
        if pulled is None:  # who never pulled computes on what every process knows
            pulled = _initial(self.spec)
        out = self._own()
        compensate(gradient, self._values, pulled, self._compensation, out)
        return out

    def _update(self, gradient: F32, rate: float) -> None:
        if self._decay is not None:
            gradient = self._decay.of_block(gradient, self._values, self._own())
        self._snapshot = None
        self.version += 1
        self._rule.update_block(self._values, self._state, gradient, rate, self.version)

    def _own(self) -> F32:
        """The scratch array; tables whose gradients are used as they come never have one."""
        if not len(self._scratch):
            self._scratch = np.empty_like(self._values)
        return self._scratch


def _initial(spec: DenseTableSpec) -> F32:
    values: F32 = np.empty(spec.size, np.float32)
    fill_block(spec.initializer, spec.seed, spec.offset, values)
    return values
