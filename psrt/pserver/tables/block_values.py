"""The values of a block: readers keep what they were shown, a writer copies only what they keep.

A reply is sent from the memory that the next update writes to, unless it is still being sent by
then: `to_change` asks the reference count whether anybody holds a view. Of 64 MiB, the copy and the
fresh memory for it would cost 25 ms a step. The table calls all of this under its lock; a reader
may let go of what it holds at any time.
"""

from __future__ import annotations

import numpy as np

from psrt.core.types import F32
from psrt.kernels.optimizers import elementwise
from psrt.rpc.wire import is_unreferenced


class BlockValues:
    """`values` (n,), which own their memory and belong to this object from now on."""

    def __init__(self, values: F32) -> None:
        self._memory = [values]  # and behind them what was copied from last
        self._shown: F32 | None = None

    def now(self) -> F32:
        """(n,), to be looked at under the lock only."""
        return self._memory[0]

    def show(self) -> F32:
        """(n,) read-only, never changes; the same array for all readers between two updates."""
        if self._shown is None:
            self._shown = self._memory[0].view()
            self._shown.flags.writeable = False
        return self._shown

    def to_change(self) -> F32:
        """(n,), to be updated in place: nobody looks at it any more."""
        self._shown = None
        if not is_unreferenced(self._memory, 0):
            self._memory = [self._copied(), self._memory[0]]
        return self._memory[0]

    def _copied(self) -> F32:
        """A copy, in memory of an earlier one that nobody looks at any more, if there is such."""
        is_free = len(self._memory) > 1 and is_unreferenced(self._memory, 1)
        copy = self._memory[1] if is_free else np.empty_like(self._memory[0])
        elementwise.copy(self._memory[0], copy)
        return copy
