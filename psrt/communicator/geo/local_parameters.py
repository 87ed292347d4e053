"""The protocol of the parameters that a Geo trainer updates itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from psrt.communicator.geo.geo_table import GeoTable
from psrt.core.types import F32


class UpdateState(NamedTuple):
    """The optimizer state (vectors, size) of a dense parameter, and the number of its updates."""

    values: F32
    steps: int


class LocalParameters(Protocol):
    """Parameters that a trainer updates itself; the training thread calls it between two steps."""

    @property
    def tables(self) -> Mapping[str, GeoTable]:
        """Every sparse table of the plan."""
        ...

    def dense(self, name: str) -> F32:
        """The contiguous array of a dense parameter; it is changed in place."""
        ...

    def agreed(self, other_steps: int) -> None:
        """Record an exchange that changed dense parameters.

        Learning-rate schedules must be `other_steps` ahead of the updates made here: the
        mini-batches of the other trainers.
        """
        ...

    def optimizers(self) -> Mapping[str, Any]:
        """The optimizer of each parameter as JSON, to be compared when a cut is resumed."""
        ...

    def update_states(self) -> Mapping[str, UpdateState]:
        """The optimizer state of each dense parameter, not copied; nothing changes it meanwhile."""
        ...

    def go_on(self, states: Mapping[str, UpdateState]) -> None:
        """Continue with copies of these optimizer states; others stay as they are."""
        ...
