"""A dense table: the values of one block of a parameter, optimizer state, version and lock.

Called from any handler thread. A reader gets a snapshot that never changes. All readers of one
version share it, and it costs no copy unless one of them still uses it at the next update
(`psrt.pserver.tables.block_values`). An update moves the values by a gradient
(`psrt.pserver.tables.block_update`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from psrt.core.errors import InternalError
from psrt.core.specs import DenseTableSpec
from psrt.core.types import F32
from psrt.kernels.optimizers import compensate
from psrt.kernels.tables import fill_block
from psrt.pserver.frozen import (
    CUTS,
    BlockState,
    FrozenBlock,
    FrozenPages,
    Meta,
    assembled,
    facts_of,
)
from psrt.pserver.tables.block_update import BlockUpdate, Source, compensated, mean_of
from psrt.pserver.tables.block_values import BlockValues
from psrt.pserver.tables.helper_threads import NO_HELPERS, HelperThreads
from psrt.pserver.tables.weight_backups import WeightBackups


class DenseTable:
    """One block of `spec.size` values; `version` counts the updates.

    Values and version change only under the lock. `compensation` is the λ of DC-ASGD; above 0 the
    table keeps the values that trainers pulled. `helpers` take half of an update of a large block.
    """

    def __init__(
        self, spec: DenseTableSpec, compensation: float = 0.0, helpers: HelperThreads = NO_HELPERS
    ) -> None:
        self.spec = spec
        self.version = 0
        self._move = BlockUpdate(spec, helpers)
        self._compensation = compensation
        self._backups = WeightBackups()
        self._lock = threading.Lock()
        self._values = BlockValues(_initial(spec))
        self._since: dict[str, int] = {}  # the version that each consumer's next delta begins at
        if compensation:
            compensate.load()

    @property
    def nbytes(self) -> int:
        """Values and optimizer state."""
        return 4 * self.spec.size + self._move.nbytes

    def apply(self, gradient: F32, rate: float, trainer: int = 0, version: int = 0) -> None:
        """Make one update by `gradient` (size,), which `trainer` computed on `version`."""
        with self._lock:
            if self._compensation:
                pulled = self._computed_on(trainer, version)
                self._update(compensated(gradient, pulled, self._compensation), rate)
            else:
                self._update(gradient, rate)

    def apply_mean(self, gradients: Sequence[F32], trainers: int, rate: float) -> None:
        """Make one update by the sum of `gradients`, in their order, times 1 / `trainers`."""
        with self._lock:
            self._update(mean_of(gradients, trainers), rate)

    def read(self, trainer: int = 0) -> tuple[F32, int]:
        """Read-only values (size,) for `trainer`, and their version."""
        with self._lock:
            values = self._values.show()
            if self._compensation:
                self._backups.keep(trainer, self.version, values)
            return values, self.version

    def begin_with(self, values: F32) -> None:
        """Take `values` (size,) in place of the initial ones; does nothing after an update.

        The next delta of each consumer has them.
        """
        with self._lock:
            if not self.version:
                self._values = BlockValues(values.copy())
                self._since = dict.fromkeys(self._since, -1)

    def release(self, trainer: int) -> None:
        """Drop the values kept for `trainer`, which has completed."""
        with self._lock:
            self._backups.release(trainer)

    def track_changes(self, consumer: str = CUTS) -> None:
        """Begin the first delta of a consumer here."""
        with self._lock:
            self._since[consumer] = self.version

    def freeze(self, is_delta: bool = False, consumer: str = CUTS) -> FrozenBlock:
        """Fix the present values, optimizer state and version; updates go on with copies.

        A delta has them if there were updates since the latest confirmed freeze of the
        consumer. Raises `InternalError` for a delta without `track_changes`.
        """
        with self._lock:
            if is_delta and consumer not in self._since:
                raise InternalError(f"table {self.spec.name!r} has no freeze to follow")
            state = self._move.state.show().reshape(-1, self.spec.size)
            block = BlockState(self._values.show(), state, self.version)
            since = self._since[consumer] if is_delta else None
            facts = facts_of(self.spec, self.version, since)
            return FrozenBlock(facts, block, partial(self._confirm, consumer), self._drop_spares)

    def restore(self, sources: Iterable[FrozenPages]) -> None:
        """Go on from freezes of blocks that cover this one, which may have other bounds.

        Of each block a full one comes first, then its deltas in order. Raises `TableError` if a
        block does not fit, elements are missing, or versions differ.
        """
        block = assembled(self.spec, self._move.vectors, sources)
        with self._lock:
            self._values = BlockValues(block.values)
            self._move.state = BlockValues(block.state.reshape(-1))
            self._backups = WeightBackups()
            self.version = block.version

    def _confirm(self, consumer: str, meta: Meta) -> None:
        if consumer in self._since:
            self._since[consumer] = max(self._since[consumer], meta["version"])

    def _drop_spares(self) -> None:
        with self._lock:
            self._values.drop_spare()
            self._move.state.drop_spare()

    def _update(self, source: Source, rate: float) -> None:
        self.version += 1
        self._move(self._values.to_change(), source, rate, self.version)

    def _computed_on(self, trainer: int, version: int) -> F32:
        """The values (size,) that a gradient of `trainer` was computed on."""
        pulled = self._backups.computed_on(trainer, version)
        if pulled is not None:
            return pulled
        # A trainer that never pulled computes on the initial values, a function of the spec. What
        # it pulled before a recovery is lost: such a gradient is not compensated.
        return self._values.show() if version else _initial(self.spec)


def _initial(spec: DenseTableSpec) -> F32:
    values: F32 = np.empty(spec.size, np.float32)
    fill_block(spec.initializer, spec.seed, spec.offset, values)
    return values
