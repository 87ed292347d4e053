"""The numbers of a block, values or state, copied on write only while a reader still holds them.

A reply is sent from the memory that the next update writes to, unless it is still being sent then:
`to_change` checks by the reference count whether a view exists. For 64 MiB, the copy and fresh
memory for it would cost 25 ms a step. The table calls all of this under its lock; a reader may drop
its view at any time.
"""

from __future__ import annotations

import numpy as np

from psrt.core.types import F32
from psrt.kernels.optimizers import elementwise
from psrt.rpc.wire import is_unreferenced


class BlockValues:
    """Takes over `values` (n,); copies views, whose readers would not be counted."""

    def __init__(self, values: F32) -> None:
        owned = values if values.flags.owndata else values.copy()
        self._memory = [owned]  # followed by the memory of the latest copy's source
        self._shown: F32 | None = None

    def now(self) -> F32:
        """The values (n,), for use under the lock only."""
        return self._memory[0]

    def show(self) -> F32:
        """A read-only snapshot (n,), shared by all readers between two updates."""
        if self._shown is None:
            self._shown = self._memory[0].view()
            self._shown.flags.writeable = False
        return self._shown

    def to_change(self) -> F32:
        """The values (n,) for an update in place: no reader holds them."""
        self._shown = None
        if not is_unreferenced(self._memory, 0):
            self._memory = [self._copied(), self._memory[0]]
        return self._memory[0]

    def drop_spare(self) -> None:
        """Drop the memory that is kept for the next copy."""
        del self._memory[1:]

    def _copied(self) -> F32:
        """A copy, in the memory of an earlier one if no reader holds that."""
        is_free = len(self._memory) > 1 and is_unreferenced(self._memory, 1)
        copy = self._memory[1] if is_free else np.empty_like(self._memory[0])
        elementwise.copy(self._memory[0], copy)
        return copy
