"""Frames whose payload is in a shared-memory segment instead of the socket.

Both ends of a connection over a Unix socket may share memory: each writes large payloads to
segments of its own (`LocalSegments`) and maps those of its peer (`RemoteSegments`). A frame then
carries the header alone. Its tensors are views of the segment. Whole numbers (ids, counts) are
copied before they are checked, because their sender could still change them; floats are not.

A segment is written again only when nobody reads it. The preamble flags of each frame name the
segments of the peer that its sender still has views of; while all are in use, payloads travel
through the socket. A connection carries one call at a time, so the flags suffice.

A process without descriptors left gets frames without the one of their segment. A pserver then
refuses the frame by `SEGMENT_REFUSED`, and its client sends it again through the socket.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from psrt.core.errors import ErrorCode, WireError
from psrt.core.types import F32, U8, Shape
from psrt.rpc import pb
from psrt.rpc.shm.segments import MAX_SEGMENTS, LocalSegments, RemoteSegments
from psrt.rpc.wire import Buffer, Message, decode, decode_apart, empty, encode, encode_apart, parse

SHARES, APART, NEW = 1, 2, 4
"""Preamble flags: the sender maps segments; the payload is in one; its descriptor is attached."""

_NUMBER_AT, _HELD_AT = 4, 8  # bits of the flags: the segment; those of the peer in use
_MAX_DESCRIPTORS = 4  # of one sendmsg; ours brings one
ANCILLARY_BYTES = socket.CMSG_SPACE(_MAX_DESCRIPTORS * 4)


class SegmentRefusedError(WireError):
    """A frame whose segment cannot be mapped here; `header` is that of the call."""

    default_code = ErrorCode.SEGMENT_REFUSED
    header: pb.Header


class Outgoing(NamedTuple):
    """A frame as a gather list, with the descriptor `fd` if any; call `sent` once it is sent."""

    parts: list[Buffer]
    flags: int = 0
    fd: int | None = None
    sent: Callable[[], None] = lambda: None

    @property
    def ancillary(self) -> list[tuple[int, int, bytes]]:
        if self.fd is None:
            return []
        return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", self.fd))]


class SharedMemory:
    """One end of a connection; `agreed` is set once the peer is known to map segments.

    A pserver announces it in its reply to HELLO, a client by the flags of its frames.
    """

    def __init__(self, limit_bytes: int, *, agreed: bool = False) -> None:
        self._agreed = agreed
        self._remote = RemoteSegments(limit_bytes)
        self._local = LocalSegments(limit_bytes)
        self._fds: list[int] = []  # received, and not attached yet

    def empty(self, shape: Shape) -> F32:
        """An array for the next message, in a segment if there is room."""
        return self._local.empty(shape) if self._agreed else empty(shape)

    def outgoing(self, message: Message) -> Outgoing:
        flags = SHARES | self._remote.held << _HELD_AT
        packed = self._local.pack(message.tensors) if self._agreed else None
        if packed is None:
            return Outgoing(encode(message), flags)
        segment = packed.segment
        flags |= APART | packed.number << _NUMBER_AT | (NEW if segment.fd is not None else 0)
        head = encode_apart(message, packed.starts, packed.payload_bytes)
        return Outgoing([head], flags, segment.fd, segment.close_fd)

    def take_descriptors(self, ancillary: list[tuple[int, int, bytes]]) -> None:
        """Keep the descriptors that arrived with some bytes of a frame; raises for too many."""
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                whole = len(data) // 4
                self._fds += struct.unpack(f"{whole}i", data[: 4 * whole])
        if len(self._fds) > MAX_SEGMENTS:
            raise WireError("The peer passed descriptors that no frame has announced.")

    def decoder(self, flags: int) -> Callable[[U8], Message]:
        """Return the function that decodes the frame with these preamble flags."""
        number, held = flags >> _NUMBER_AT & 0xF, flags >> _HELD_AT
        self._agreed = self._agreed or bool(flags & SHARES)
        self._local.set_held(held)
        if flags & NEW:
            if not self._fds:
                return partial(_refuse, why="its descriptor did not arrive")
            try:
                self._remote.attach(number, self._fds.pop(0))
            except OSError as error:
                return partial(_refuse, why=str(error))
        if not flags & APART:
            return decode
        return partial(decode_apart, payload=partial(self._remote.payload, number))

    def share_no_more(self) -> None:
        """Send payloads through the socket from now on."""
        self._local.close()

    def close(self) -> None:
        self._local.close()
        self._remote.close()
        while self._fds:
            os.close(self._fds.pop())


def _refuse(frame: U8, why: str) -> Message:
    """Raise the error of a frame without its segment."""
    error = SegmentRefusedError(
        f"A payload in shared memory was refused: {why}.",
        hint="Raise the limit of open files of this process (LimitNOFILE, ulimit -n).",
    )
    error.header, _ = parse(frame)
    raise error
