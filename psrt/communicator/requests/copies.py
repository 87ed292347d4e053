"""Copies of arrays in memory that is used again once they have gone.

A trainer copies megabytes in each step, and frees those of seconds at once. Memory that is new to
the process costs several times as much as the copy itself: each page is a fault, and is cleared.
"""

from __future__ import annotations

import weakref
from typing import NamedTuple

import numpy as np

from psrt.core.types import U8, Array

CHUNK_BYTES = 2 << 20
"""Bytes of one piece of memory. From 4 MiB on numpy asks for huge pages, whose first use was three
times as expensive in a virtual machine."""

ALIGNED = 64
"""Bytes between the beginnings of copies are a multiple of this, a line of the cache."""


class _Chunk(NamedTuple):
    """A piece of memory, which is free once nothing refers to `lease`, the base of its copies."""

    memory: U8
    lease: weakref.ref[U8]

    @property
    def is_free(self) -> bool:
        return self.lease() is None


class Copies:
    """Makes copies one after the other; one thread at a time. Any thread may drop one.

    At most `kept_bytes` of memory stay here when more than that is free.
    """

    def __init__(self, kept_bytes: int, chunk_bytes: int = CHUNK_BYTES) -> None:
        self._kept_bytes, self._chunk_bytes = kept_bytes, chunk_bytes
        self._chunks: list[_Chunk] = []
        self._lease: U8 | None = None
        self._used_bytes = 0

    @property
    def size_bytes(self) -> int:
        """Memory that is held, whether copies are in it or not."""
        return len(self._chunks) * self._chunk_bytes

    def copy(self, array: Array) -> Array:
        """Return a C-contiguous copy; an array larger than a piece of memory has its own."""
        if array.nbytes > self._chunk_bytes:
            return array.copy()
        place = self._place(array.nbytes).view(array.dtype).reshape(array.shape)
        np.copyto(place, array)
        return place

    def _place(self, size_bytes: int) -> U8:
        if self._lease is None or self._used_bytes + size_bytes > self._chunk_bytes:
            self._lease = self._next()
            self._used_bytes = 0
        first = self._used_bytes
        self._used_bytes += -(-size_bytes // ALIGNED) * ALIGNED
        return self._lease[first : first + size_bytes]

    def _next(self) -> U8:
        """A free piece of memory, or a new one."""
        self._lease = None
        free = [chunk for chunk in self._chunks if chunk.is_free]
        self._chunks = [chunk for chunk in self._chunks if not chunk.is_free]
        memory = free.pop().memory if free else np.empty(self._chunk_bytes, np.uint8)
        lease = np.frombuffer(memory.data, np.uint8)  # its views refer to it, and to nothing behind
        self._chunks.append(_Chunk(memory, weakref.ref(lease)))
        most = max(0, self._kept_bytes // self._chunk_bytes - len(self._chunks))
        self._chunks += free[:most]
        return lease
