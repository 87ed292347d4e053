"""Payloads that lie in shared memory instead of travelling through the socket.

Both ends of a connection over a Unix socket may share memory: each lays large payloads out in areas
of its own (`LocalAreas`) and maps those of the other (`TheirAreas`). A frame then brings the header
alone. Its tensors are views of the area: floats are looked at in place, whole numbers (ids, counts)
are copied first, so that nobody changes them behind the back of who has checked them.

An area is written again only when nobody reads it. Each frame says in the flags of its preamble
which areas of the other end its sender still has views of; while all have readers, payloads travel
as ever. A connection carries one call at a time, so no other word about it is needed.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from psrt.core.errors import WireError
from psrt.core.types import F32, U8, Shape
from psrt.rpc.shm.areas import area_bytes, attach
from psrt.rpc.shm.own_areas import MOST_AREAS, LocalAreas
from psrt.rpc.wire import (
    Buffer,
    Message,
    decode,
    decode_apart,
    empty,
    encode,
    encode_apart,
    is_alone,
)

SHARES, APART, NEW = 1, 2, 4
"""Flags of a preamble: this end reads areas; the payload lies in one; its descriptor comes too."""

_NUMBER_AT, _HELD_AT = 4, 8  # bits of the flags: which area; which areas of the other are read
_MOST_DESCRIPTORS = 4  # of one sendmsg; ours brings one
ANCILLARY_BYTES = socket.CMSG_SPACE(_MOST_DESCRIPTORS * 4)


class Outgoing(NamedTuple):
    """A frame as a gather list; with `fd` goes a descriptor, which `sent` is told of."""

    parts: list[Buffer]
    flags: int = 0
    fd: int | None = None
    sent: Callable[[], None] = lambda: None

    @property
    def ancillary(self) -> list[tuple[int, int, bytes]]:
        if self.fd is None:
            return []
        return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", self.fd))]


class TheirAreas:
    """The areas that the other end writes, as far as it has passed them."""

    def __init__(self, limit_bytes: int) -> None:
        self._most_bytes = area_bytes(limit_bytes)
        self._areas: list[U8] = []
        self.close()

    @property
    def held(self) -> int:
        """The areas (bits) that somebody has views of."""
        return sum(
            [1 << number for number in range(MOST_AREAS) if not is_alone(self._areas, number)]
        )

    def attach(self, number: int, fd: int) -> None:
        """An area in the place of a former one; views of that stay what they are."""
        self._areas[_checked(number)] = attach(fd, self._most_bytes)

    def close(self) -> None:
        """Mappings stay as long as somebody looks at them."""
        self._areas = [np.empty(0, np.uint8) for _ in range(MOST_AREAS)]

    def payload(self, number: int, size_bytes: int) -> memoryview:
        area = self._areas[_checked(number)]
        if size_bytes > len(area):
            raise WireError(f"A payload of {size_bytes} bytes was announced in {len(area)}.")
        return area.data[:size_bytes]


class SharedMemory:
    """One end's part; `agreed` says whether the other end is known to read areas.

    A pserver says so in its reply to HELLO, a client by the flags of its frames.
    """

    def __init__(self, limit_bytes: int, *, agreed: bool = False) -> None:
        self._agreed = agreed
        self._theirs = TheirAreas(limit_bytes)
        self._own = LocalAreas(limit_bytes)
        self._fds: list[int] = []  # that came, and belong to no area yet

    def empty(self, shape: Shape) -> F32:
        """An array for the next message that need not be copied, if there is room; else any."""
        return self._own.empty(shape) if self._agreed else empty(shape)

    def outgoing(self, message: Message) -> Outgoing:
        flags = SHARES | self._theirs.held << _HELD_AT
        packed = self._own.pack(message.tensors) if self._agreed else None
        if packed is None:
            return Outgoing(encode(message), flags)
        flags |= APART | packed.number << _NUMBER_AT | (NEW if packed.area.fd is not None else 0)
        head = encode_apart(message, packed.starts, packed.payload_bytes)
        return Outgoing([head], flags, packed.area.fd, packed.area.passed)

    def received(self, ancillary: list[tuple[int, int, bytes]]) -> None:
        """What came beside some bytes of a frame."""
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                whole = len(data) // 4
                self._fds += struct.unpack(f"{whole}i", data[: 4 * whole])

    def decoder(self, flags: int) -> Callable[[U8], Message]:
        """What reads the frame that these flags announce."""
        number, held = flags >> _NUMBER_AT & 0xF, flags >> _HELD_AT
        self._agreed = self._agreed or bool(flags & SHARES)
        self._own.told(held)
        if flags & NEW:
            if not self._fds:
                raise WireError(f"The descriptor of area {number} did not come with its frame.")
            self._theirs.attach(number, self._fds.pop(0))
        if len(self._fds) > MOST_AREAS:
            raise WireError("The peer passed descriptors that no frame has announced.")
        if not flags & APART:
            return decode
        return partial(decode_apart, payload=partial(self._theirs.payload, number))

    def close(self) -> None:
        self._own.close()
        self._theirs.close()
        while self._fds:
            os.close(self._fds.pop())


def _checked(number: int) -> int:
    if number >= MOST_AREAS:
        raise WireError(f"The peer speaks of area {number}; there are {MOST_AREAS}.")
    return number
