"""Shared-memory segments of a connection: each end writes its own and maps those of its peer.

A segment is an unnamed file in memory (memfd): nothing of it is left when its processes have ended,
however they end. Its owner passes the descriptor through a Unix socket. The size is sealed, so a
truncation cannot kill a reader that maps it, and nobody but its owner can write it. All pages are
allocated at creation, so a lack of memory is an error here and no signal later. Huge pages are
refused: their owner could return one to a pool that is empty when the reader needs it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import math
import mmap
import os
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from psrt.core.errors import ErrorCode, WireError
from psrt.core.types import F32, U8, Array, Shape
from psrt.rpc.wire import aligned, empty, is_unreferenced

log = logging.getLogger("psrt.rpc")

MAX_SEGMENTS = 2
"""Of each end: one is filled while the other is still read."""

MIN_PAYLOAD_BYTES = 64 * 1024
"""Smaller payloads reach the peer through the socket before it could open a segment."""

_SMALLEST_BYTES = 1 << 20
_NOTHING_LEFT = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
_SEAL_FUTURE_WRITE = 0x10  # linux/fcntl.h; Python has no name for it


class Segment:
    """Memory of its owner: `memory` (size,) uint8. `fd` is open until the peer has received it."""

    def __init__(self, size_bytes: int) -> None:
        """Allocate `size_bytes` or more; raises `OSError` where memory is short or not allowed."""
        rounded = segment_bytes(size_bytes)
        self.fd: int | None = os.memfd_create("psrt", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.posix_fallocate(self.fd, 0, rounded)
            self.memory = _mapped(self.fd, rounded, mmap.PROT_READ | mmap.PROT_WRITE)
            _seal(self.fd)
        except BaseException:
            self.close_fd()
            raise

    def close_fd(self) -> None:
        """Close the descriptor, once it was sent or will never be; the memory stays mapped."""
        if self.fd is not None:
            with contextlib.suppress(OSError):
                os.close(self.fd)
            self.fd = None


def attach(fd: int, max_bytes: int) -> U8:
    """Map a segment of another process: (size,) uint8, read-only, of at most `max_bytes`.

    Closes `fd`. Raises `WireError` if it is no sealed memory of a legal size, and `OSError` where
    this process has no descriptor or memory left for it.
    """
    try:
        state = os.fstat(fd)
        size_bytes = state.st_size
        if fcntl.fcntl(fd, fcntl.F_GET_SEALS) & _SEALS != _SEALS:
            raise WireError("The peer passed memory whose size it could still change.")
        if state.st_dev != _device_of_segments():
            raise WireError("The peer passed memory of another kind than that of a memfd.")
        if not 0 < size_bytes <= max_bytes:
            raise WireError(
                f"The peer passed {size_bytes} bytes of memory; the limit is {max_bytes}.",
                code=ErrorCode.WIRE_TOO_LARGE,
            )
        return _mapped(fd, size_bytes, mmap.PROT_READ)
    except OSError as error:
        if error.errno in _NOTHING_LEFT:
            raise
        raise WireError(f"The peer passed a descriptor that is no memory: {error}.") from error
    finally:
        os.close(fd)


def _seal(fd: int) -> None:
    """Fix the size of a memfd, and let only the mappings that exist write it."""
    try:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS | _SEAL_FUTURE_WRITE)
    except OSError:  # Linux before 5.1
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)


@cache
def _device_of_segments() -> int:
    """The device of each memfd without huge pages."""
    fd = os.memfd_create("psrt", os.MFD_CLOEXEC)
    try:
        return os.fstat(fd).st_dev
    finally:
        os.close(fd)


def segment_bytes(payload_bytes: int) -> int:
    """Size of a segment for a payload: a power of two, so slowly growing payloads reuse it."""
    return max(_SMALLEST_BYTES, 1 << (payload_bytes - 1).bit_length())


def _mapped(fd: int, size_bytes: int, protection: int) -> U8:
    """Map `fd`; the mapping lives as long as the last view and has its own descriptor."""
    return np.frombuffer(mmap.mmap(fd, size_bytes, mmap.MAP_SHARED, protection), np.uint8)


class Packed(NamedTuple):
    """A payload of `payload_bytes` in segment `number`; tensor i begins at `starts[i]`."""

    number: int
    segment: Segment
    starts: tuple[int, ...]
    payload_bytes: int


class LocalSegments:
    """The segments that this end writes; used by one thread at a time.

    `empty` gives a handler memory for its reply, so rows are read from their table straight into
    the segment; `pack` copies the other tensors of the message behind them.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._segments: list[Segment | None] = [None] * MAX_SEGMENTS
        self._held = 0
        self._largest = 0  # payload so far
        self._number = 0  # of the segment of the next message
        self._end = 0  # of what is in it
        self._reserved: dict[int, tuple[int, Array]] = {}  # by id: start, and the array

    def set_held(self, held: int) -> None:
        """Record the segments (bits) that the peer has views of; all others may be written."""
        self._held = held
        self._forget()

    def empty(self, shape: Shape) -> F32:
        """An array in the segment of the next message if it has room, else in private memory."""
        size_bytes = 4 * math.prod(shape)
        segment = self._open(size_bytes) if size_bytes >= MIN_PAYLOAD_BYTES else None
        if segment is None or self._end + size_bytes > len(segment.memory):
            return empty(shape)
        array: F32 = np.ndarray(shape, np.float32, segment.memory, self._end)
        self._reserved[id(array)] = self._end, array
        self._end = aligned(self._end + size_bytes)
        return array

    def pack(self, tensors: Sequence[Array]) -> Packed | None:
        """Lay out the payload of a message, copying tensors that are not in its segment yet.

        Returns None where the payload has to travel through the socket.
        """
        sizes = [0 if id(each) in self._reserved else aligned(each.nbytes) for each in tensors]
        end = self._end + sum(sizes)
        segment = None
        if MIN_PAYLOAD_BYTES <= end <= self._limit_bytes:
            self._largest = max(self._largest, end)
            segment = self._open(end)
        if segment is None or end > len(segment.memory):
            self._forget()
            return None
        starts = tuple([self._put(segment.memory, tensor) for tensor in tensors])
        self._forget()
        return Packed(self._number, segment, starts, end)

    def close(self) -> None:
        for segment in self._segments:
            if segment is not None:
                segment.close_fd()
        self._segments = [None] * MAX_SEGMENTS
        self._limit_bytes = 0
        self._forget()

    def _put(self, memory: U8, tensor: Array) -> int:
        """Copy `tensor` into the segment unless it is there; return its start."""
        if id(tensor) in self._reserved:
            return self._reserved[id(tensor)][0]
        if not tensor.size:
            return 0
        start, end = self._end, self._end + tensor.nbytes
        memory[start:end].view(tensor.dtype).reshape(tensor.shape)[...] = tensor
        self._end = aligned(end)
        return start

    def _open(self, size_bytes: int) -> Segment | None:
        """The segment of the next message; a segment opened by this call has `size_bytes`."""
        if self._reserved:
            return self._segments[self._number]
        needed = max(size_bytes, self._largest)
        free = [number for number in range(MAX_SEGMENTS) if not self._held >> number & 1]
        for number in free:
            segment = self._segments[number]
            if segment is not None and len(segment.memory) >= needed:
                self._number = number
                return segment
        return self._make(free[0], needed) if free and needed <= self._limit_bytes else None

    def _make(self, number: int, size_bytes: int) -> Segment | None:
        try:
            segment = Segment(size_bytes)
        except OSError as error:
            self._limit_bytes = 0  # a second attempt would fail, too
            log.info("no memory to share (%s): payloads travel through the socket", error)
            return None
        before, self._segments[number] = self._segments[number], segment
        if before is not None:
            before.close_fd()
        self._number = number
        return segment

    def _forget(self) -> None:
        self._reserved.clear()
        self._end = 0


class RemoteSegments:
    """The segments that the peer writes, mapped read-only as it passes them."""

    def __init__(self, limit_bytes: int) -> None:
        self._max_bytes = segment_bytes(limit_bytes)
        self._segments: list[U8] = []
        self.close()

    @property
    def held(self) -> int:
        """The segments (bits) of which a view is alive."""
        segments = self._segments
        return sum([1 << n for n in range(MAX_SEGMENTS) if not is_unreferenced(segments, n)])

    def attach(self, number: int, fd: int) -> None:
        """Replace a segment; views of the former one stay valid."""
        self._segments[_checked(number)] = attach(fd, self._max_bytes)

    def close(self) -> None:
        """Drop all segments; a mapping lives as long as its last view."""
        self._segments = [np.empty(0, np.uint8) for _ in range(MAX_SEGMENTS)]

    def payload(self, number: int, size_bytes: int) -> memoryview:
        segment = self._segments[_checked(number)]
        if size_bytes > len(segment):
            raise WireError(f"A payload of {size_bytes} bytes was announced in {len(segment)}.")
        return segment.data[:size_bytes]


def _checked(number: int) -> int:
    if number >= MAX_SEGMENTS:
        raise WireError(f"The peer named segment {number}; there are {MAX_SEGMENTS}.")
    return number
