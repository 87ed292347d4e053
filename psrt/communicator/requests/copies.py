"""Copies of arrays in memory that is used again once they have gone.

A trainer copies megabytes in each step, and frees them soon, or those of seconds at once. Memory
that is new to the process costs several times as much as the copy itself: each page is a fault, and
is cleared.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections import defaultdict, deque
from functools import partial
from typing import Any

import numpy as np

from psrt.core.types import U8, Array, Shape

KEPT_BYTES = 256 << 20
"""Free memory that is kept by default."""

CHUNK_BYTES = 64 << 10
"""Bytes of a piece of memory for small copies; a larger one has a piece of its own, so that the
piece used last, which caches still have, is the next to be used."""

ALIGNED = 64
"""Bytes between the beginnings of copies are a multiple of this, a line of the cache."""


class Copies:
    """Makes copies one after the other; any thread may make and drop them.

    They are views of *leases*, arrays over a whole piece of memory: it is free once its lease has
    gone. A copy larger than `chunk_bytes` has a piece of memory of its own. Memory stays here for
    later copies while all of it is at most `kept_bytes`.
    """

    def __init__(self, kept_bytes: int = KEPT_BYTES, chunk_bytes: int = CHUNK_BYTES) -> None:
        self._kept_bytes, self._chunk_bytes = kept_bytes, chunk_bytes
        self._lock = threading.Lock()
        self._leases: dict[int, weakref.ref[U8]] = {}  # by `id`
        self._returned: deque[U8] = deque()  # memory of leases that have gone, without the lock
        self._free: defaultdict[int, list[U8]] = defaultdict(list)  # by size, last used last
        self._free_bytes = self._leased_bytes = 0
        self._lease: U8 | None = None
        self._used_bytes = 0

    @property
    def size_bytes(self) -> int:
        """Memory that is held, whether copies are in it or not."""
        return self._leased_bytes + self._free_bytes

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
        lease = self._leases.get(id(array.base))
        return lease is not None and lease() is array.base

    def _place(self, size_bytes: int) -> U8:
        if size_bytes > self._chunk_bytes:
            return self._next(_rounded(size_bytes))[:size_bytes]
        if self._lease is None or self._used_bytes + size_bytes > self._chunk_bytes:
            self._lease = None  # it may be free
            self._lease, self._used_bytes = self._next(self._chunk_bytes), 0
        first = self._used_bytes
        self._used_bytes += -(-size_bytes // ALIGNED) * ALIGNED
        return self._lease[first : first + size_bytes]

    def _next(self, size_bytes: int) -> U8:
        """The lease of the free piece of memory of this size that was used last, or of a new
        one."""
        self._take_back()
        if free := self._free[size_bytes]:
            memory = free.pop()
            self._free_bytes -= size_bytes
        else:
            self._make_room(size_bytes)
            memory = np.empty(size_bytes, np.uint8)
        lease = np.frombuffer(memory.data, np.uint8)  # its views refer to it, and to nothing behind
        self._leased_bytes += size_bytes
        gone = partial(_gone, self._leases, self._returned, id(lease), memory)
        self._leases[id(lease)] = weakref.ref(lease, gone)
        return lease

    def _take_back(self) -> None:
        """Keep memory of leases that have gone, as far as it may be kept."""
        while self._returned:
            memory = self._returned.popleft()
            if self.size_bytes <= self._kept_bytes:
                self._free[memory.nbytes].append(memory)
                self._free_bytes += memory.nbytes
            self._leased_bytes -= memory.nbytes

    def _make_room(self, size_bytes: int) -> None:
        """Drop free memory of other sizes if there would be more than may be kept."""
        sizes = [size for size, free in self._free.items() if free]
        while sizes and self.size_bytes + size_bytes > self._kept_bytes:
            self._free_bytes -= self._free[sizes[-1]].pop().nbytes
            if not self._free[sizes[-1]]:
                sizes.pop()


def _gone(
    leases: dict[int, weakref.ref[U8]],
    returned: deque[U8],
    lease: int,
    memory: U8,
    _: weakref.ref[U8],
) -> None:
    """Return the memory of a lease; called in any thread, which may hold the lock."""
    del leases[lease]
    returned.append(memory)


def _rounded(size_bytes: int) -> int:
    """A size of pieces that is at most an eighth larger: few sizes are used again and again."""
    step = max(ALIGNED, 1 << max(0, size_bytes.bit_length() - 4))
    return -(-size_bytes // step) * step
