"""Memory for rows of tables: a slab that grows where it lies.

A slab lies in an anonymous private mapping. Growing one moves page tables instead of rows
(mremap; 0.4 ms for 4 GB), so there is no moment with two copies, and pages that no row has reached
cost nothing. `trim` gives pages back; the addresses stay. No huge pages: clearing one can take 7 ms
of a request on a virtual machine, several slabs reach their next one at once, and reading rows that
were prefetched is not faster with them.
"""

from __future__ import annotations

import mmap

import numpy as np

from psrt.core.types import F32

_FIRST_BYTES = 64 << 10
_LEAST_TRIM_BYTES = 256 << 10
_SPARE_SHARE = 16  # of what is in use: less is kept for the next rows


class Slab:
    """Growing rows of `words` float32 each; `rows` (capacity, words) is not initialised."""

    def __init__(self, words: int) -> None:
        self._words = words
        self._memory = _mapping(max(_FIRST_BYTES, words * 4))
        self._reached_bytes = 0
        self.rows: F32 = self._view()

    def reserve(self, rows: int) -> None:
        """Room for `rows` rows; whoever kept `self.rows` from before must let go of it first."""
        self._reached_bytes = max(self._reached_bytes, rows * self._words * 4)
        if rows <= len(self.rows):
            return
        size_bytes = max(rows, 2 * len(self.rows)) * self._words * 4
        del self.rows  # a mapping with views does not move
        try:
            self._memory = _grown(self._memory, size_bytes)
        finally:
            self.rows = self._view()

    def trim(self, rows: int) -> None:
        """Nothing behind the first `rows` rows is needed any more: give back what is worth a call
        of the kernel. Rows that are reserved again are not initialised."""
        end = _page_up(rows * self._words * 4)
        spare_bytes = self._reached_bytes - end
        if spare_bytes >= max(_LEAST_TRIM_BYTES, end // _SPARE_SHARE):
            self._memory.madvise(mmap.MADV_DONTNEED, end, spare_bytes)
            self._reached_bytes = end

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
    return memory


def _page_up(size_bytes: int) -> int:
    return -(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
