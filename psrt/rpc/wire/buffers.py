"""Memory that frames are received into: 64-byte aligned, grown on demand, reused when free.

A decoded tensor is a view of its receive buffer, so a buffer may be written again only when no view
of it is alive. `ReceiveBuffers` asks the reference count instead of trusting every caller to hand
buffers back: a tensor that somebody keeps keeps its buffer, and the next frame gets another one.
Each connection owns one `ReceiveBuffers`; it is used by one thread at a time.

The size of a message is what its sender says: `room_for` is how much of that is believed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from psrt.core.types import U8, Array
from psrt.rpc.wire.preamble import no_memory

ALIGNMENT = 64
_SMALLEST_BYTES = 64 * 1024
_BELIEVED_BYTES = 64 << 20  # a dense block of 16 M float32 and its header fit: it is never moved


def aligned_empty(size_bytes: int) -> U8:
    """(size_bytes,) uint8 whose first byte lies on a 64-byte boundary."""
    memory = _empty(size_bytes + ALIGNMENT)
    start = _first_boundary(memory)
    return memory[start : start + size_bytes]


def room_for(size_bytes: int, got: int) -> int:
    """Bytes to have ready for a message of `size_bytes` of which `got` have come.

    Twice what has come, and 64 MiB in any case: to announce much costs a stranger nothing, and a
    message that is larger is moved, all in all, once.
    """
    return min(size_bytes, got + max(got, _BELIEVED_BYTES))


def aligned(size_bytes: int) -> int:
    """The next boundary at or behind `size_bytes`."""
    return -(-size_bytes // ALIGNMENT) * ALIGNMENT


class ReceiveBuffers:
    """A few buffers of one connection; `take` never returns one that is still looked at.

    The list holds the memory itself: numpy makes it the base of every view, however indirect.
    """

    def __init__(self, kept: int = 2) -> None:
        self._kept = kept
        self._memory: list[U8] = []
        self._starts: list[int] = []  # of the first boundary in each: 1.4 µs to find

    def take(self, size_bytes: int, at_first: int | None = None) -> U8:
        """(size_bytes or more,) uint8, aligned, valid until the last view of it is gone.

        Where there is no such buffer, the new one is for `at_first` bytes, if that is said.
        """
        needed = size_bytes + ALIGNMENT
        for i in reversed(range(len(self._memory))):  # the newest was made for the largest frame
            if is_unreferenced(self._memory, i) and len(self._memory[i]) >= needed:
                return self._memory[i][self._starts[i] :]
        self._grow(needed if at_first is None else at_first + ALIGNMENT)
        return self._memory[-1][self._starts[-1] :]

    def drop_newest(self) -> None:
        """The last one made turned out to be too short."""
        del self._memory[-1], self._starts[-1]

    def _grow(self, size_bytes: int) -> None:
        """Rounded up to a power of two, so that slowly growing frames do not allocate each time."""
        rounded = max(_SMALLEST_BYTES, 1 << (size_bytes - 1).bit_length())
        memory = _empty(rounded)
        self._memory = [*self._memory, memory][-self._kept :]
        self._starts = [*self._starts, _first_boundary(memory)][-self._kept :]


def is_unreferenced(arrays: Sequence[Array], i: int) -> bool:
    """Whether nothing but its place in `arrays` refers to the i-th, which owns its memory."""
    return sys.getrefcount(arrays[i]) == _ALONE


def address(array: Array) -> int:
    """Of the first byte of `array`."""
    return int(array.__array_interface__["data"][0])


def _empty(size_bytes: int) -> U8:
    try:
        return np.empty(size_bytes, np.uint8)
    except MemoryError as error:
        raise no_memory(f"{size_bytes} bytes of a message") from error


def _first_boundary(memory: U8) -> int:
    return -address(memory) % ALIGNMENT


def _count_alone() -> int:
    """What `sys.getrefcount` says of an array that only its list refers to."""
    arrays = [np.empty(1, np.uint8)]
    i = 0
    return sys.getrefcount(arrays[i])


_ALONE = _count_alone()
