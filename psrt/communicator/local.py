"""Training without pservers: the communicator of one trainer that holds every table itself.

`finish` applies gradients to the tables right away, so each step reads the updates of all steps
before it. Dense parameters are trained in the trainer's scope and never pass through here.

Used by the training thread only, except `pull_rows`, which an evaluation calls on a thread of its
own while nothing trains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from psrt.communicator.base import (
    Backlog,
    Beginning,
    BeginsAt,
    ComingRows,
    Gradient,
    Gradients,
    Position,
    Pulled,
    Timeline,
)
from psrt.core.counters import Counters
from psrt.core.errors import ConfigError
from psrt.core.tensors import SelectedRows
from psrt.core.tracing import traced
from psrt.core.types import F32, I64


class UpdatableTable(Protocol):
    """One sparse table in this process."""

    def read(self, ids: I64) -> F32:
        """Return rows (n, width) of `ids` (n,); zeros for the padding id."""
        ...

    def apply(self, ids: I64, gradients: F32) -> None:
        """Update the rows of distinct `ids` (n,) by `gradients` (n, width)."""
        ...

    rate: float | None
    """The learning rate instead of the table's schedule."""


class LocalCommunicator:
    """A communicator over `tables`, by name; nothing leaves the process."""

    one_call_step = makes_cuts = False
    resized_to = 0
    resumed = Beginning()

    def __init__(self, tables: Mapping[str, UpdatableTable]) -> None:
        self.counters = Counters()
        self._tables = tables
        self._wanted: Mapping[str, I64] = {}

    def watch(self, timeline: Timeline | None) -> None:
        """Do nothing: no call leaves the process."""

    def backlog(self) -> Backlog:
        """Return nothing: a step ends when its gradients are applied."""
        return Backlog()

    def start(self, timeout_s: float) -> dict[str, F32]:
        """Return nothing: the parameters are in the scope."""
        return {}

    def pull_rows(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        return {name: self._tables[name].read(ids) for name, ids in wanted.items()}

    def begin(self, wanted: Mapping[str, I64]) -> None:
        """Store the ids: rows of the next step contain the updates of this one."""
        self._wanted = wanted

    def read_behind(self, wanted: Mapping[str, I64]) -> ComingRows | None:
        """Return None: rows are here, and read at once."""
        return None

    def offer(self, name: str, gradient: Gradient) -> None:
        """Ignore it: tables are updated at the end of a step."""

    def use_rates(self, rates: Mapping[str, float], sums: bool = False) -> None:
        """Let these tables learn at these rates from now on; one trainer has nothing to sum."""
        for name in rates.keys() & self._tables.keys():
            self._tables[name].rate = rates[name]

    def begins_at(self, begin: BeginsAt) -> None:
        """Begin as a job without a cut."""
        begin(self.resumed)

    def continues_at(self, position: Position) -> None:
        """Ignore it: there are no cuts."""

    def marks(self, reached: str) -> None:
        """Ignore it: no other process goes on here."""

    @property
    def taken_cut(self) -> int:
        """0: there are no cuts."""
        return 0

    def request_cut(self, timeout_s: float, behind: int = 0) -> int:
        """Raise `ConfigError`: there are no cuts."""
        raise ConfigError(
            "a cut was asked for in a training without pservers, which makes none.",
            hint="Train with pservers that have --checkpoint-dir; or save the model.",
        )

    def on_cut(self, action: Callable[[int], None]) -> None:
        """Ignore it: there are no cuts."""

    def at_rest(self) -> AbstractContextManager[None]:
        """Do nothing: there are no cuts."""
        return nullcontext()

    def follow_resizes(self) -> None:
        """Do nothing: there are no other trainers."""

    def is_alone(self) -> None:
        """Do nothing: there is no other trainer."""

    def declare_trained(self) -> None:
        """Do nothing: nobody waits for this trainer."""

    @traced("finish")
    def finish(self, gradients: Gradients) -> Pulled:
        """Update the tables and read the rows of the next step."""
        for name, gradient in gradients.items():
            assert isinstance(gradient, SelectedRows), name
            self._tables[name].apply(gradient.ids, gradient.values)
        wanted, self._wanted = self._wanted, {}
        return Pulled(rows=self.pull_rows(wanted))

    def flush(self, timeout_s: float, final: bool = False) -> dict[str, F32]:
        """Return nothing: no gradient is ever queued."""
        return {}

    def stop(self, timeout_s: float, interrupted: bool = False) -> dict[str, F32]:
        return {}

    def close(self) -> None:
        """Do nothing: there is no thread to end."""


__all__ = ["LocalCommunicator", "UpdatableTable"]
