"""Training without pservers, several trainers: means of gradients come from a group of processes.

`finish` waits for the means of this step and applies them, dense ones by the update ops of the
program, sparse ones to the tables in this process. All trainers apply equal means to equal
parameters, so they stay equal to the bit; the result is that of Sync on pservers.

A trainer whose data have ended goes on to take part, with no share in the means, until the data of
all have ended. A trainer that fails or is lost ends the others, which raise `JobError` with its
name: a group has nobody who could keep its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from psrt.collective.group import TrainerGroup
from psrt.collective.reducer import GradientReducer
from psrt.collective.rows import RowExchange
from psrt.collective.staging import buffer
from psrt.communicator.base import Gradient, Gradients, Pulled
from psrt.communicator.local import LocalCommunicator, UpdatableTable
from psrt.core.errors import ErrorCode, PsrtError
from psrt.core.specs import Collective
from psrt.core.tensors import SelectedRows
from psrt.core.tracing import traced
from psrt.core.types import F32, Shape
from psrt.kernels.tables import rows as row_kernels


class GroupParameters(Protocol):
    """The parameters that each trainer of a group holds and updates: all."""

    @property
    def tables(self) -> Mapping[str, UpdatableTable]:
        """The sparse tables by name."""
        ...

    @property
    def widths(self) -> Mapping[str, int]:
        """The widths of their rows."""
        ...

    @property
    def gradients(self) -> Sequence[tuple[str, Shape]]:
        """Dense parameters with a gradient, in the order in which backward makes them."""
        ...

    def dense(self, name: str) -> F32:
        """Return the values of a dense parameter, as they are updated."""
        ...

    def update(self, means: Mapping[str, F32]) -> None:
        """Update dense parameters by mean gradients."""
        ...


class CollectiveCommunicator(LocalCommunicator):
    """One trainer of a group; belongs to the training thread."""

    def __init__(self, group: TrainerGroup, mode: Collective, own: GroupParameters) -> None:
        super().__init__(own.tables)
        self._group, self._own = group, own
        self._reducer = GradientReducer(group, own.gradients, mode.bucket_kib << 10, buffer)
        self._rows = RowExchange(group, own.widths)
        self._goes_on, self._has_left = True, False
        counters = self.counters
        self._steps = counters.counter("rounds", "steps that all trainers of a group took together")
        self._sent = counters.counter("push_bytes", "bytes of gradients handed to the group")
        self._got = counters.counter("pull_bytes", "bytes of rows that came from other trainers")
        self._wait_s = counters.timer("exchange_s", "seconds spent waiting for other trainers")

    def start(self, timeout_s: float) -> dict[str, F32]:
        """Return the dense parameters of trainer 0, which all trainers begin with."""
        return {name: self._of_first(self._own.dense(name)) for name, _ in self._own.gradients}

    def offer(self, name: str, gradient: Gradient) -> None:
        """Put a dense gradient into its bucket; a full one travels while backward goes on."""
        if not isinstance(gradient, SelectedRows):
            self._reducer.offer(name, gradient)

    @traced("finish")
    def finish(self, gradients: Gradients) -> Pulled:
        """Apply the mean gradients of this step, and read the rows of the next one.

        Without gradients this trainer has no share in them.
        """
        for name, gradient in gradients.items():
            self.offer(name, gradient)
        self._exchange(gradients)
        wanted, self._wanted = self._wanted, {}
        return Pulled(rows=self.pull_rows(wanted))

    def flush(self, timeout_s: float, final: bool = False) -> dict[str, F32]:
        """Return nothing: parameters are in the scope, and every step was applied.

        If `final`, take part in the steps of the others until their data have ended, too.
        """
        if final:
            self._goes_on = False
            while not self._has_left and self._exchange({}):
                pass
            self._leave("")
        return {}

    def stop(self, timeout_s: float, interrupted: bool = False) -> dict[str, F32]:
        if interrupted:
            self._leave("it was asked to end")
        return self.flush(timeout_s, final=True)

    def close(self) -> None:
        """Leave the group; the others fail, unless this trainer has completed."""
        self._leave("it failed")

    def fails(self, error: BaseException) -> None:
        """Leave the group because of an error, which the others name."""
        code = error.code if isinstance(error, PsrtError) else ErrorCode.INTERNAL
        self._leave(f"it failed with {code.name}")

    def _exchange(self, gradients: Gradients) -> int:
        """Take part in a step; returns the number of trainers that go on after it."""
        sparse = {n: g for n, g in gradients.items() if isinstance(g, SelectedRows)}
        with self._wait_s.time():
            self._reducer.start_all(bool(gradients), self._goes_on)
            rows = self._rows.gather(sparse)
            tally, means = self._reducer.end()
        self._steps.add()
        self._sent.add(self._reducer.size_bytes + self._rows.sent_bytes)
        self._got.add(self._rows.sent_bytes * (self._group.size - 1))
        if tally.trained:
            self._own.update(means)
            for name, table in self._tables.items():
                self._apply(table, rows.get(name), self._own.widths[name], tally.trained)
        return tally.going_on

    def _apply(
        self, table: UpdatableTable, rows: SelectedRows | None, width: int, trained: int
    ) -> None:
        """Update a table by a mean gradient; a step without ids counts as one, too."""
        if rows is None:
            table.apply(np.empty(0, np.int64), np.empty((0, width), np.float32))
            return
        merged = row_kernels.merge(rows)
        values = merged.values
        if trained > 1:
            values *= np.float32(1 / trained)
        table.apply(merged.ids, values)

    def _of_first(self, values: F32) -> F32:
        memory = buffer(self._group, values.size)
        np.copyto(memory.values, values.reshape(-1))
        memory.broadcast()
        return memory.values.reshape(values.shape)

    def _leave(self, why: str) -> None:
        if not self._has_left:
            self._has_left = True
            self._group.leave(why)


__all__ = ["CollectiveCommunicator", "GroupParameters"]
