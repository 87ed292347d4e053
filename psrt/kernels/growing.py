"""Memory for rows of tables: a slab that grows where it lies.

A slab lies in an anonymous private mapping. Growing one moves page tables instead of rows
(mremap), so there is no moment with two copies, and pages that no row has reached cost nothing.
"""

from __future__ import annotations

import contextlib
import mmap

import numpy as np

from psrt.core.types import F32

_FIRST_BYTES = 64 << 10
_HUGE_PAGES_FROM_BYTES = 4 << 20


class Slab:
    """Growing rows of `words` float32 each; `rows` (capacity, words) is not initialised."""

    def __init__(self, words: int) -> None:
        self._words = words
        self._memory = _mapping(max(_FIRST_BYTES, words * 4))
        self.rows: F32 = self._view()

    def reserve(self, rows: int) -> None:
        """Room for `rows` rows; whoever kept `self.rows` from before must let go of it first."""
        if rows <= len(self.rows):
            return
        size_bytes = max(rows, 2 * len(self.rows)) * self._words * 4
        del self.rows  # a mapping with views does not move
        try:
            self._memory = _grown(self._memory, size_bytes)
        finally:
            self.rows = self._view()

    def _view(self) -> F32:
        capacity = len(self._memory) // (self._words * 4)
        flat = np.frombuffer(self._memory, np.float32, capacity * self._words)
        return flat.reshape(capacity, self._words)


def _mapping(size_bytes: int) -> mmap.mmap:
    return mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def _grown(memory: mmap.mmap, size_bytes: int) -> mmap.mmap:
    """The one place where slabs grow."""
    try:
        memory.resize(size_bytes)
    except SystemError:  # no mremap here: copy
        bigger = _mapping(size_bytes)
        bigger[: len(memory)] = memory[:]
        memory.close()
        memory = bigger
    if size_bytes >= _HUGE_PAGES_FROM_BYTES:
        with contextlib.suppress(AttributeError, OSError):  # a hint; not every kernel takes it
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory
