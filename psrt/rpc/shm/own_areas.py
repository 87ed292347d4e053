"""What one end of a connection writes for the other: large payloads, laid out in shared memory.

`Message.empty` gives a handler room for its reply, so that rows are read from their table straight
to where the other process looks at them; what a message brings from elsewhere is copied behind.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from psrt.core.types import F32, U8, Array, Shape
from psrt.rpc.shm.areas import Area
from psrt.rpc.wire import aligned, empty

log = logging.getLogger("psrt.rpc")

MOST_AREAS = 2
"""Of each end: one that is filled while the other is still read."""

LEAST_BYTES = 64 * 1024
"""Smaller payloads are in the socket before the other end could look at an area."""


class Packed(NamedTuple):
    """Where a payload of `payload_bytes` lies: each tensor at its place of `starts`."""

    number: int
    area: Area
    starts: tuple[int, ...]
    payload_bytes: int


class LocalAreas:
    """The areas that this end writes; one thread at a time."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._areas: list[Area | None] = [None] * MOST_AREAS
        self._held = 0
        self._largest = 0  # payload so far
        self._number = 0  # of the area that the next message is laid out in
        self._end = 0  # of what is laid out there
        self._reserved: dict[int, tuple[int, Array]] = {}  # by id: where, and the array

    def told(self, held: int) -> None:
        """The other end has views of these areas (bits), and of no others."""
        self._held = held
        self._forget()

    def empty(self, shape: Shape) -> F32:
        """An array in the area of the next message, if that has room; else elsewhere."""
        size_bytes = 4 * math.prod(shape)
        area = self._open(size_bytes) if size_bytes >= LEAST_BYTES else None
        if area is None or self._end + size_bytes > len(area.memory):
            return empty(shape)
        array: F32 = np.ndarray(shape, np.float32, area.memory, self._end)
        self._reserved[id(array)] = self._end, array
        self._end = aligned(self._end + size_bytes)
        return array

    def pack(self, tensors: Sequence[Array]) -> Packed | None:
        """Lay the payload of a message out, copying what is not in its area yet; None if it shall
        travel."""
        sizes = [0 if id(each) in self._reserved else aligned(each.nbytes) for each in tensors]
        end = self._end + sum(sizes)
        area = None
        if LEAST_BYTES <= end <= self._limit_bytes:
            self._largest = max(self._largest, end)
            area = self._open(end)
        if area is None or end > len(area.memory):
            self._forget()
            return None
        starts = tuple([self._put(area.memory, tensor) for tensor in tensors])
        self._forget()
        return Packed(self._number, area, starts, end)

    def close(self) -> None:
        for area in self._areas:
            if area is not None:
                area.passed()
        self._areas = [None] * MOST_AREAS
        self._limit_bytes = 0
        self._forget()

    def _put(self, memory: U8, tensor: Array) -> int:
        """Where `tensor` lies in the area."""
        if id(tensor) in self._reserved:
            return self._reserved[id(tensor)][0]
        if not tensor.size:
            return 0
        start, end = self._end, self._end + tensor.nbytes
        memory[start:end].view(tensor.dtype).reshape(tensor.shape)[...] = tensor
        self._end = aligned(end)
        return start

    def _open(self, size_bytes: int) -> Area | None:
        """The area of the next message; one that begins here has room for `size_bytes`."""
        if self._reserved:
            return self._areas[self._number]
        needed = max(size_bytes, self._largest)
        free = [number for number in range(MOST_AREAS) if not self._held >> number & 1]
        for number in free:
            area = self._areas[number]
            if area is not None and len(area.memory) >= needed:
                self._number = number
                return area
        return self._make(free[0], needed) if free and needed <= self._limit_bytes else None

    def _make(self, number: int, size_bytes: int) -> Area | None:
        try:
            area = Area(size_bytes)
        except OSError as error:
            self._limit_bytes = 0  # there is none, or none is allowed: it will not get better
            log.info("no memory to share (%s): payloads travel through the socket", error)
            return None
        before, self._areas[number] = self._areas[number], area
        if before is not None:
            before.passed()
        self._number = number
        return area

    def _forget(self) -> None:
        self._reserved.clear()
        self._end = 0
