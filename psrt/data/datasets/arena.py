"""Memory for the words of many records, taken piece by piece.

An arena belongs to one thread. The allocator returns such large arrays to the system once the last
piece on them is gone; pages that were never reached cost nothing.
"""

from __future__ import annotations

import numpy as np

from psrt.core.types import U32
from psrt.kernels.text import WORD_BYTES

# glibc may keep smaller ones for itself.
_ARENA_WORDS = (64 << 20) // WORD_BYTES


class Arena:
    """`free` (n,) uint32: words not taken yet."""

    def __init__(self) -> None:
        self.free: U32 = np.empty(0, np.uint32)

    def renew(self, words: int = 0) -> None:
        """Drop the free words; `words` or more are free afterwards."""
        self.free = np.empty(max(words, _ARENA_WORDS), np.uint32)

    def take(self, words: int) -> U32:
        """Return the next `words` words, of a new array if too few are free."""
        if words > len(self.free):
            self.renew(words)
        taken, self.free = self.free[:words], self.free[words:]
        return taken
