"""Memory that frames are received into: 64-byte aligned, grown on demand, reused when free.

A decoded tensor is a view of its receive buffer, so a buffer may be written again only when no view
of it is alive. `ReceiveBuffers` asks the reference count instead of trusting every caller to hand
buffers back: a tensor that somebody keeps keeps its buffer, and the next frame gets another one.
Each connection owns one `ReceiveBuffers`; it is used by one thread at a time.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from psrt.core.types import U8, Array

ALIGNMENT = 64
_SMALLEST_BYTES = 64 * 1024


def aligned_empty(size_bytes: int) -> U8:
    """(size_bytes,) uint8 whose first byte lies on a 64-byte boundary."""
    memory = np.empty(size_bytes + ALIGNMENT, np.uint8)
    start = _first_boundary(memory)
    return memory[start : start + size_bytes]


class ReceiveBuffers:
    """A few buffers of one connection; `take` never returns one that is still looked at.

    The list holds the memory itself: numpy makes it the base of every view, however indirect.
    """

    def __init__(self, kept: int = 2) -> None:
        self._kept = kept
        self._memory: list[U8] = []
        self._starts: list[int] = []  # of the first boundary in each: 1.4 µs to find

    def take(self, size_bytes: int) -> U8:
        """(size_bytes or more,) uint8, aligned, valid until the last view of it is gone."""
        needed = size_bytes + ALIGNMENT
        for i in reversed(range(len(self._memory))):  # the newest was made for the largest frame
            if is_alone(self._memory, i) and len(self._memory[i]) >= needed:
                return self._memory[i][self._starts[i] :]
        self._grow(needed)
        return self._memory[-1][self._starts[-1] :]

    def _grow(self, size_bytes: int) -> None:
        """Rounded up to a power of two, so that slowly growing frames do not allocate each time."""
        rounded = max(_SMALLEST_BYTES, 1 << (size_bytes - 1).bit_length())
        memory = np.empty(rounded, np.uint8)
        self._memory = [*self._memory, memory][-self._kept :]
        self._starts = [*self._starts, _first_boundary(memory)][-self._kept :]


def is_alone(arrays: Sequence[Array], i: int) -> bool:
    """Whether nothing but its place in `arrays` refers to the i-th, which owns its memory."""
    return sys.getrefcount(arrays[i]) == _ALONE


def address(array: Array) -> int:
    """Of the first byte of `array`."""
    return int(array.__array_interface__["data"][0])


def _first_boundary(memory: U8) -> int:
    return -address(memory) % ALIGNMENT


def _count_alone() -> int:
    """What `sys.getrefcount` says of an array that only its list refers to."""
    arrays = [np.empty(1, np.uint8)]
    i = 0
    return sys.getrefcount(arrays[i])


_ALONE = _count_alone()
