"""Copies of arrays in memory that is used again once they have gone.

A trainer copies megabytes in each step, and frees them soon, or those of seconds at once. Memory
that is new to the process costs several times as much as the copy itself: each page is a fault, and
is cleared.
"""

from __future__ import annotations

import math
import sys
import threading
import weakref
from typing import Any, NamedTuple

import numpy as np

from psrt.core.types import U8, Array, Shape

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
    """Makes copies one after the other; any thread may make and drop them.

    An array larger than `chunk_bytes` has a piece of memory of its own. At most `kept_bytes` of
    memory stay here when more than that is free.
    """

    def __init__(self, kept_bytes: int = sys.maxsize, chunk_bytes: int = CHUNK_BYTES) -> None:
        self._kept_bytes, self._chunk_bytes = kept_bytes, chunk_bytes
        self._chunks: list[_Chunk] = []
        self._leases = weakref.WeakValueDictionary[int, U8]()  # by `id`
        self._lease: U8 | None = None
        self._used_bytes = 0
        self._lock = threading.Lock()

    @property
    def size_bytes(self) -> int:
        """Memory that is held, whether copies are in it or not."""
        return sum(chunk.memory.nbytes for chunk in self._chunks)

    def empty(self, shape: Shape, dtype: np.dtype[Any]) -> Array:
        """Return a C-contiguous array of any values, which the caller fills."""
        with self._lock:
            memory = self._place(math.prod(shape) * dtype.itemsize)
        return memory.view(dtype).reshape(shape)

    def copy(self, array: Array) -> Array:
        """Return a C-contiguous copy."""
        place = self.empty(array.shape, array.dtype)
        np.copyto(place, array)
        return place

    def has(self, array: Array) -> bool:
        """Return True if an array was made here, or is a view of one."""
        base = array.base
        return base is not None and self._leases.get(id(base)) is base

    def _place(self, size_bytes: int) -> U8:
        if size_bytes > self._chunk_bytes:
            return self._next(size_bytes)
        if self._lease is None or self._used_bytes + size_bytes > self._chunk_bytes:
            self._lease = None  # it may be free
            self._lease, self._used_bytes = self._next(self._chunk_bytes), 0
        first = self._used_bytes
        self._used_bytes += -(-size_bytes // ALIGNED) * ALIGNED
        return self._lease[first : first + size_bytes]

    def _next(self, size_bytes: int) -> U8:
        """The lease of a free piece of memory of this size, or of a new one."""
        free, used = list[_Chunk](), list[_Chunk]()
        for chunk in self._chunks:
            (free if chunk.is_free else used).append(chunk)
        taken = next((each for each in reversed(free) if each.memory.nbytes == size_bytes), None)
        memory = np.empty(size_bytes, np.uint8) if taken is None else taken.memory
        lease = np.frombuffer(memory.data, np.uint8)  # its views refer to it, and to nothing behind
        self._leases[id(lease)] = lease
        used.append(_Chunk(memory, weakref.ref(lease)))
        left_bytes = self._kept_bytes - sum(chunk.memory.nbytes for chunk in used)
        kept = []
        for chunk in free:
            if chunk is not taken and chunk.memory.nbytes <= left_bytes:
                left_bytes -= chunk.memory.nbytes
                kept.append(chunk)
        self._chunks = [*kept, *used]
        return lease
