"""Frames over a connected socket: both ends of the stream carrier use this.

Sockets stay blocking: a gather of header and tensor memory goes out in one `sendmsg`, a frame comes
in by one `recv_into` with MSG_WAITALL, straight into the buffer the tensors will be views of.
Deadlines are the kernel's SO_RCVTIMEO and SO_SNDTIMEO, because a Python socket timeout would poll
before every call. One thread at a time uses a `FrameSocket`; `close_reading` and `abort` may come
from another.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import time
from typing import Any

from psrt.rpc.buffers import ReceiveBuffers
from psrt.rpc.frames import Buffer, Message, decode, encode
from psrt.rpc.preamble import PREAMBLE_BYTES, check_size, parse_preamble, preamble, truncated

_SOCKET_BUFFER_BYTES = 4 << 20  # the kernel caps it; a whole mini-batch of rows should fit
_IOV_MAX = os.sysconf("SC_IOV_MAX")
_TIMEVAL = struct.Struct("ll")
_DRAIN_S = 1.0


class FrameSocket:
    """Sends and receives whole messages; `max_bytes` bounds a frame in both directions."""

    def __init__(self, sock: socket.socket, max_bytes: int) -> None:
        self._sock = sock
        self._max_bytes = max_bytes
        self._buffers = ReceiveBuffers()
        self._deadline: float | None = None
        _tune(sock)

    def expire_at(self, deadline: float | None) -> None:
        """After this time of `time.monotonic`, `send` and `receive` raise `BlockingIOError`."""
        self._deadline = deadline

    def send(self, message: Message) -> None:
        parts = encode(message)
        size_bytes = sum(len(part) for part in parts)
        check_size(size_bytes, self._max_bytes)
        parts[0] = preamble(size_bytes) + parts[0]
        while parts:
            self._arm(socket.SO_SNDTIMEO)
            sent = self._sock.sendmsg(parts[:_IOV_MAX])
            parts = _unsent(parts, sent)

    def receive(self) -> Message | None:
        """The next message, or None when the peer closed between two frames."""
        start = bytearray(PREAMBLE_BYTES)
        got = self._fill(memoryview(start))
        if not got:
            return None
        if got < PREAMBLE_BYTES:
            raise truncated(f"{got} bytes", f"a preamble of {PREAMBLE_BYTES}")
        size_bytes = parse_preamble(start, self._max_bytes)
        frame = self._buffers.take(size_bytes).data[:size_bytes]
        got = self._fill(frame)
        if got < size_bytes:
            raise truncated(f"{got} bytes", f"{size_bytes}")
        return decode(frame)

    def drain(self) -> None:
        """After a refusal: say goodbye and read what is still coming, for a second at most.

        Closing with unread input would reset the connection and take our error reply with it.
        """
        self._deadline = time.monotonic() + _DRAIN_S
        scratch = memoryview(bytearray(64 * 1024))
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)
            while self._fill(scratch) == len(scratch):
                pass

    def close_reading(self) -> None:
        """A `receive` that waits for the next frame returns None; a running call still replies."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RD)

    def abort(self) -> None:
        """Wake whoever blocks on this socket, with an error."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._sock.close()

    def _fill(self, view: memoryview) -> int:
        """Receive until `view` is full or the peer closes; returns the bytes received."""
        got = 0
        while got < len(view):
            self._arm(socket.SO_RCVTIMEO)
            received = self._sock.recv_into(view[got:], 0, socket.MSG_WAITALL)
            if not received:
                break
            got += received
        return got

    def _arm(self, option: int) -> None:
        if self._deadline is None:
            return
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise BlockingIOError("deadline passed")
        # A zero timeval means for ever, so never round down to it.
        timeval = _TIMEVAL.pack(int(left_s), int(left_s % 1 * 1e6) + 1)
        self._sock.setsockopt(socket.SOL_SOCKET, option, timeval)


def _tune(sock: socket.socket) -> None:
    sock.setblocking(True)
    if sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A host that vanished sends no FIN; its connections end 90 s later.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BUFFER_BYTES)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SOCKET_BUFFER_BYTES)


def _unsent(parts: list[Buffer], sent: int) -> list[Buffer]:
    """What is left of a gather list after the kernel took `sent` bytes."""
    for i, part in enumerate(parts):
        if sent < len(part):
            rest: Any = memoryview(part)[sent:]
            return [rest, *parts[i + 1 :]]
        sent -= len(part)
    return []
