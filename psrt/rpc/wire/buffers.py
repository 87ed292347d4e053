"""Memory that frames are received into: 64-byte aligned, grown on demand, reused when free.

A decoded tensor is a view of its receive buffer, so a buffer may be written again only when no view
of it is alive. `ReceiveBuffers` checks the reference count, so callers need not return buffers: a
tensor that is kept keeps its buffer, and the next frame gets another one. Each connection owns one
`ReceiveBuffers`; one thread at a time uses it.

A sender may announce any size: `room_for` bounds the memory allocated for it in advance.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from psrt.core.types import U8, Array
from psrt.rpc.wire.preamble import no_memory

ALIGNMENT = 64
_SMALLEST_BYTES = 64 * 1024
_PREALLOCATED_BYTES = 64 << 20  # fits a dense block of 16 M float32 with its header: never moved


def aligned_empty(size_bytes: int) -> U8:
    """(size_bytes,) uint8 whose first byte is on a 64-byte boundary."""
    memory = _empty(size_bytes + ALIGNMENT)
    start = _first_boundary(memory)
    return memory[start : start + size_bytes]


def room_for(size_bytes: int, got: int) -> int:
    """Bytes to allocate for a message of `size_bytes` of which `got` have arrived.

    Twice the bytes that have arrived, and at least 64 MiB: announcing a large message costs a
    stranger nothing. Larger messages are copied once in all.
    """
    return min(size_bytes, got + max(got, _PREALLOCATED_BYTES))


def aligned(size_bytes: int) -> int:
    """`size_bytes` rounded up to a multiple of 64."""
    return -(-size_bytes // ALIGNMENT) * ALIGNMENT


class ReceiveBuffers:
    """A few buffers of one connection; `take` never returns one with a live view.

    The list holds the memory itself: numpy makes it the base of every view, however indirect.
    """

    def __init__(self, kept: int = 2) -> None:
        self._kept = kept
        self._memory: list[U8] = []
        self._starts: list[int] = []  # of the first boundary in each: 1.4 µs to find

    def take(self, size_bytes: int, at_first: int | None = None) -> U8:
        """(size_bytes or more,) uint8, aligned, valid until the last view of it is gone.

        If a new buffer is needed, it holds `at_first` bytes where that is given.
        """
        needed = size_bytes + ALIGNMENT
        for i in reversed(range(len(self._memory))):  # the newest was made for the largest frame
            if is_unreferenced(self._memory, i) and len(self._memory[i]) >= needed:
                return self._memory[i][self._starts[i] :]
        self._grow(needed if at_first is None else at_first + ALIGNMENT)
        return self._memory[-1][self._starts[-1] :]

    def drop_newest(self) -> None:
        """Drop the newest buffer, which proved too short."""
        del self._memory[-1], self._starts[-1]

    def _grow(self, size_bytes: int) -> None:
        """Add a buffer, rounded up to a power of two so that slowly growing frames reuse it."""
        rounded = max(_SMALLEST_BYTES, 1 << (size_bytes - 1).bit_length())
        memory = _empty(rounded)
        self._memory = [*self._memory, memory][-self._kept :]
        self._starts = [*self._starts, _first_boundary(memory)][-self._kept :]


def is_unreferenced(arrays: Sequence[Array], i: int) -> bool:
    """True if only `arrays` itself refers to its i-th array, which owns its memory."""
    return sys.getrefcount(arrays[i]) == _UNREFERENCED


def address(array: Array) -> int:
    """Address of the first byte of `array`."""
    return int(array.__array_interface__["data"][0])


def _empty(size_bytes: int) -> U8:
    try:
        return np.empty(size_bytes, np.uint8)
    except MemoryError as error:
        raise no_memory(f"{size_bytes} bytes of a message") from error


def _first_boundary(memory: U8) -> int:
    return -address(memory) % ALIGNMENT


def _count_unreferenced() -> int:
    """The result of `sys.getrefcount` for an array that only its list refers to."""
    arrays = [np.empty(1, np.uint8)]
    i = 0
    return sys.getrefcount(arrays[i])


_UNREFERENCED = _count_unreferenced()
