"""Memory that frames are received into: 64-byte aligned, grown on demand, reused when free.

A decoded tensor is a view of its receive buffer, so a buffer may be written again only when no view
of it is alive. `ReceiveBuffers` asks the reference count instead of trusting every caller to hand
buffers back: a tensor that somebody keeps keeps its buffer, and the next frame gets another one.
Each connection owns one `ReceiveBuffers`; it is used by one thread at a time.
"""

from __future__ import annotations

import sys

import numpy as np

from psrt.core.types import U8

ALIGNMENT = 64
_SMALLEST_BYTES = 64 * 1024


def aligned_empty(size_bytes: int) -> U8:
    """(size_bytes,) uint8 whose first byte lies on a 64-byte boundary."""
    return _align(np.empty(size_bytes + ALIGNMENT, np.uint8), size_bytes)


class ReceiveBuffers:
    """A few buffers of one connection; `take` never returns one that is still looked at.

    The list holds the memory itself: numpy makes it the base of every view, however indirect.
    """

    def __init__(self, kept: int = 2) -> None:
        self._kept = kept
        self._memory: list[U8] = []

    def take(self, size_bytes: int) -> U8:
        """(size_bytes,) uint8, aligned, valid until the last view of it is gone."""
        needed = size_bytes + ALIGNMENT
        for i in range(len(self._memory)):
            if sys.getrefcount(self._memory[i]) == _ALONE and len(self._memory[i]) >= needed:
                return _align(self._memory[i], size_bytes)
        return _align(self._grow(needed), size_bytes)

    def _grow(self, size_bytes: int) -> U8:
        """Rounded up to a power of two, so that slowly growing frames do not allocate each time."""
        rounded = max(_SMALLEST_BYTES, 1 << (size_bytes - 1).bit_length())
        self._memory = [*self._memory, np.empty(rounded, np.uint8)][-self._kept :]
        return self._memory[-1]


def _align(memory: U8, size_bytes: int) -> U8:
    skip = -_address(memory) % ALIGNMENT
    return memory[skip : skip + size_bytes]


def _address(array: U8) -> int:
    return int(array.__array_interface__["data"][0])


def _count_alone() -> int:
    """What `sys.getrefcount` says of an array that only its list refers to."""
    only = [np.empty(1, np.uint8)]
    i = 0
    return sys.getrefcount(only[i])


_ALONE = _count_alone()
