"""Memory for rows of tables: a slab that grows in place.

A slab is an anonymous private mapping. Growing one moves page tables instead of rows
(mremap; 0.4 ms for 4 GB), so there is no moment with two copies, and pages that no row has reached
cost nothing. `trim` gives pages back; the addresses stay.

The first access to a page waits 2 µs; `prepare` has pages made before rows come. No huge pages:
they make reads faster (13,312 rows of 16: 1.1 instead of 1.5 ms), but in a virtual machine, which
asks its host for them, the first access waits 6 ms, and an access to rows that were moved into one
waits 12. Huge pages made ahead of rows let kernels read tables of 1 and 5 million rows in 5 and
15 % less time, but insert 3.5 instead of 4.3 million rows a second, with twice the longest waits.
"""

from __future__ import annotations

import ctypes
import mmap
import threading

import numpy as np

from psrt.core.errors import ErrorCode, TableError
from psrt.core.types import F32

LARGE_BYTES = 8 << 20
"""Mappings of this size and more, which are half in use at least, are prepared."""

AHEAD_BYTES = 1 << 20
_STEP_BYTES = 256 << 10
_POPULATE_WRITE = 23  # of Linux 5.14; Python does not name it yet
_FIRST_BYTES = 64 << 10
_LEAST_TRIM_BYTES = 256 << 10
_SPARE_SHARE = 16  # of what is in use: less is kept for the next rows

_madvise = ctypes.CDLL(None).madvise  # that of `mmap` keeps Python's other threads waiting
_madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class Slab:
    """Growing rows of `words` float32 each; `rows` (capacity, words) is not initialised.

    One thread at a time, except for `is_short` and `prepare`, which another may call meanwhile.
    """

    def __init__(self, words: int) -> None:
        self._words = words
        self._memory = _mapping(max(_FIRST_BYTES, _page_up(words * 4)))
        self._moving = threading.Lock()  # guards the place of the mapping and what is made of it
        self._reached_bytes = 0
        self._prepared_bytes = 0
        self.rows: F32 = self._view()

    def reserve(self, rows: int) -> None:
        """Make room for `rows` rows; callers must drop references to the old `self.rows` first.

        Raises `TableError` if there is no memory, and leaves the slab as it was.
        """
        if rows > len(self.rows):
            self._grow(max(rows, 2 * len(self.rows)))
        self._reached_bytes = max(self._reached_bytes, rows * self._words * 4)

    def make(self, rows: int) -> None:
        """Have memory made for `rows` rows, which are reserved, and are all written soon.

        One call for many pages costs half of what their first accesses do (1.4 µs a page)."""
        end = _page_up(rows * self._words * 4)
        with self._moving:
            start = min(self._prepared_bytes, end)
            if end - start >= _STEP_BYTES:
                _madvise(self.rows.ctypes.data + start, end - start, _POPULATE_WRITE)
                self._prepared_bytes = end

    def trim(self, rows: int) -> None:
        """Give back memory behind the first `rows` rows, if it is worth a system call.

        Rows that are reserved again are not initialised."""
        end = _page_up(rows * self._words * 4)
        with self._moving:
            if self._reached_bytes - end >= max(_LEAST_TRIM_BYTES, end // _SPARE_SHARE):
                made_bytes = max(self._reached_bytes, self._prepared_bytes)
                self._memory.madvise(mmap.MADV_DONTNEED, end, made_bytes - end)
                self._reached_bytes = self._prepared_bytes = end

    @property
    def is_short(self) -> bool:
        """True if rows will soon reach memory that is not made yet."""
        wanted_bytes = min(self._reached_bytes + AHEAD_BYTES // 2, len(self._memory))
        return len(self._memory) >= LARGE_BYTES and self._prepared_bytes < wanted_bytes

    def prepare(self) -> None:
        """Have memory made for AHEAD_BYTES of rows to come; if the system refuses, the first access
        makes it."""
        while self._prepare_step():
            pass

    def _prepare_step(self) -> bool:
        """Make a part of it, so that growth waits for no more; returns True if more is left."""
        with self._moving:
            wanted = min(_page_up(self._reached_bytes) + AHEAD_BYTES, len(self._memory))
            start = max(self._prepared_bytes, _page_up(self._reached_bytes))
            self._prepared_bytes = min(start + _STEP_BYTES, max(start, wanted))
            size_bytes = self._prepared_bytes - start
            _madvise(self.rows.ctypes.data + start, size_bytes, _POPULATE_WRITE)
            return self._prepared_bytes < wanted

    def _grow(self, rows: int) -> None:
        size_bytes = _page_up(rows * self._words * 4)
        with self._moving:
            del self.rows  # a mapping with views does not move
            try:
                self._memory = _grown(self._memory, size_bytes)
            except (OSError, MemoryError) as error:
                raise _no_memory(len(self._memory), size_bytes, error) from error
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
    return memory


def _no_memory(size_bytes: int, wanted_bytes: int, error: Exception) -> TableError:
    return TableError(
        f"there is no memory for more rows: {size_bytes:,} bytes of a table could not become "
        f"{wanted_bytes:,} ({error}).",
        code=ErrorCode.TABLE_FULL,
        hint="Limit the table by max_bytes of its lifecycle, or spread it over more pservers.",
    )


def _page_up(size_bytes: int) -> int:
    return -(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
