"""A batch of ids, grouped by the stripes of its table."""

from __future__ import annotations

from dataclasses import dataclass

from psrt.core.types import I32, I64
from psrt.kernels.tables import no_hints


@dataclass(frozen=True)
class Routed:
    """A batch of ids (n,) grouped by stripe (`psrt.kernels.tables.routing`); one thread uses it.

    `slots` is where their rows were when they were found last: `RowStore.find`.
    """

    ids: I64
    order: I32
    starts: list[int]
    slots: I32

    def touches(self, stripe: int) -> bool:
        return self.starts[stripe] < self.starts[stripe + 1]

    def of(self, stripe: int) -> I32:
        """Positions in the batch of the ids of `stripe`."""
        return self.order[self.starts[stripe] : self.starts[stripe + 1]]

    def found(self, stripe: int) -> I32:
        """The slots of these ids."""
        return self.slots[self.starts[stripe] : self.starts[stripe + 1]]

    @property
    def nbytes(self) -> int:
        return self.ids.nbytes + self.order.nbytes + self.slots.nbytes

    def copy(self) -> Routed:
        """The same batch, to be kept: not in the memory of a message."""
        flags = self.ids.flags  # nobody writes to what is read-only and no view of anything
        ids = self.ids if flags.owndata and not flags.writeable else self.ids.copy()
        return Routed(ids, self.order, self.starts, self.slots)

    def again(self) -> Routed:
        """The same batch for another thread: slots of its own."""
        return Routed(self.ids, self.order, self.starts, self.slots.copy())

    def elsewhere(self) -> Routed:
        """The same batch for a table that has other rows of these ids."""
        return Routed(self.ids, self.order, self.starts, no_hints(len(self.order)))
