"""Frames over a connected socket: both ends of the stream carrier use this.

Sockets stay blocking: a gather of header and tensor memory goes out in one `sendmsg`. What comes in
is read as far as it is there, which is all of a small frame; the rest of a large one follows with
MSG_WAITALL, straight into the buffer the tensors will be views of, or into arrays that the caller
named (`psrt.rpc.wire.receive_into`). The buffer of a very large one grows as its bytes come, but
for a caller who named arrays: that one knows what it asked for. Deadlines are the kernel's
SO_RCVTIMEO and SO_SNDTIMEO, because a Python socket timeout would poll before every call. One
thread at a time uses a `FrameSocket`; `close_reading` and `abort` may come from another.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from psrt.core.types import F32, U8, Array, Shape
from psrt.rpc.busy_poll import NEVER, BusyPoll
from psrt.rpc.shm import ANCILLARY_BYTES, Outgoing, SharedMemory
from psrt.rpc.wire import (
    ALIGNMENT,
    PREAMBLE_BYTES,
    Message,
    ReceiveBuffers,
    check_size,
    decode,
    empty,
    encode,
    parse_preamble,
    preamble,
    receive_into,
    room_for,
    truncated,
    without,
)

T = TypeVar("T")

_TCP_BUFFER_BYTES = 4 << 20  # the kernel caps it; a whole mini-batch of rows should fit
# A mini-batch of rows fits, so that its sender need not wait until the other end was woken: a step
# of 13,312 rows of 16 takes 8 to 12 % less time than with 128 KiB, 2 MB of parameters 7 % less.
# With 4 MiB bytes are out of the cache when they are copied out: 64 MiB take a third longer.
_UNIX_BUFFER_BYTES = 1 << 20
_IOV_MAX = os.sysconf("SC_IOV_MAX")
_TIMEVAL = struct.Struct("ll")
_DRAIN_S = 1.0
_CLOSE_ON_EXEC, _WAIT_ALL = int(socket.MSG_CMSG_CLOEXEC), int(socket.MSG_WAITALL)
_BEGIN = ALIGNMENT - PREAMBLE_BYTES  # of a preamble in a buffer: the frame behind it is aligned
_FIRST_END = 60 * 1024  # in a buffer, of what is read before the places of the rest are known
_TOLD = 0.8  # of the time that is left: for how long the kernel is told to wait


class FrameSocket:
    """Sends and receives whole messages; `max_bytes` bounds a frame in both directions.

    With `shared`, payloads may lie in memory that both ends map, and do not travel.
    """

    def __init__(
        self,
        sock: socket.socket,
        max_bytes: int,
        busy_poll: BusyPoll = NEVER,
        shared: SharedMemory | None = None,
    ) -> None:
        self._sock = sock
        self._max_bytes = max_bytes
        self._busy_poll = busy_poll
        self._habit = busy_poll.habit()
        self._shared = shared
        self._buffers = ReceiveBuffers()
        self._ahead = b""  # what came behind the last frame
        self._deadline: float | None = None
        self._armed_s = {socket.SO_RCVTIMEO: 0.0, socket.SO_SNDTIMEO: 0.0}
        _tune(sock)

    def expire_at(self, deadline: float | None) -> None:
        """After this time of `time.monotonic`, `send` and `receive` raise `BlockingIOError`."""
        self._deadline = deadline

    def send(self, message: Message) -> None:
        shared = self._shared
        outgoing = Outgoing(encode(message)) if shared is None else shared.outgoing(message)
        parts, ancillary = outgoing.parts, outgoing.ancillary
        size_bytes = sum(map(len, parts))
        check_size(size_bytes, self._max_bytes)
        parts[0] = preamble(size_bytes, flags=outgoing.flags) + parts[0]
        while parts:
            some = parts[:_IOV_MAX]
            sent = self._in_time(socket.SO_SNDTIMEO, partial(self._sock.sendmsg, some, ancillary))
            parts, ancillary = without(parts, sent), []
        outgoing.sent()

    def empty(self, shape: Shape) -> F32:
        """Memory for a tensor of the next message to send, where it need not be copied."""
        return empty(shape) if self._shared is None else self._shared.empty(shape)

    def receive(self, into: Sequence[Array | None] = ()) -> Message | None:
        """The next message, or None when the peer closed between two frames.

        A large tensor is received into the array of the same number in `into`, if that has its
        dtype and shape; a call that fails may have written to it.
        """
        buffer = self._buffers.take(_FIRST_END)
        got = self._begin(buffer[:_FIRST_END] if into else buffer)
        if not got:
            return None
        if got < PREAMBLE_BYTES:
            raise truncated(f"{got} bytes", f"a preamble of {PREAMBLE_BYTES}")
        announced = parse_preamble(buffer[_BEGIN:ALIGNMENT], self._max_bytes)
        read = decode if self._shared is None else self._shared.decoder(announced.flags)
        end, got_end = ALIGNMENT + announced.size_bytes, _BEGIN + got
        if end <= got_end:
            self._ahead = buffer[end:got_end].tobytes() + self._ahead
            return read(buffer[ALIGNMENT:end])
        if end > len(buffer):
            buffer, got_end = self._make_room(buffer, got_end, end, trusted=bool(into))
        if read is not decode:
            into = ()  # the tensors are not in the frame
        return self._rest(buffer[ALIGNMENT:end], got_end - ALIGNMENT, into, read)

    def drain(self) -> None:
        """After a refusal: say goodbye and read what is still coming, for a second at most.

        Closing with unread input would reset the connection and take our error reply with it.
        """
        self._deadline = time.monotonic() + _DRAIN_S
        scratch = memoryview(bytearray(64 * 1024))
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)
            while self._read([scratch]):
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
        if self._shared is not None:
            self._shared.close()

    def _begin(self, buffer: U8) -> int:
        """Receive a preamble and what else is there of its frame; returns the bytes received."""
        view = buffer.data[_BEGIN:]
        got = self._await([view])
        while 0 < got < PREAMBLE_BYTES:
            received = self._read([view[got:]])
            if not received:
                break
            got += received
        return got

    def _await(self, gather: list[memoryview]) -> int:
        """The first `_read` of a message, which may be long in coming."""
        began = time.monotonic()
        if self._habit.is_quick and not self._ahead:
            self._busy_poll.look(self._sock.fileno())
        got = self._read(gather)
        self._habit.waited(time.monotonic() - began)
        return got

    def _make_room(self, buffer: U8, got: int, end: int, *, trusted: bool) -> tuple[U8, int]:
        """A buffer of `end` bytes or more that begins with what has come, and how much that is;
        unless the sender is `trusted`, more may come while it grows."""
        while True:
            room = end if trusted else room_for(end, got)
            roomy = self._buffers.take(end, room)
            roomy[:got] = buffer[:got]
            if len(roomy) >= end:
                return roomy, got
            missing = self._fill([roomy.data[got:]])
            self._buffers.drop_newest()
            buffer, got = roomy, len(roomy) - missing
            if missing:
                raise truncated(f"{got - ALIGNMENT} bytes", f"{end - ALIGNMENT}")

    def _rest(
        self, frame: U8, got: int, into: Sequence[Array | None], read: Callable[[U8], Message]
    ) -> Message:
        """Receive all but the first `got` bytes of `frame`, and decode it."""
        placed = receive_into(frame, got, into) if into else None
        missing = self._fill([frame.data[got:]] if placed is None else placed.gather)
        if missing:
            raise truncated(f"{len(frame) - missing} bytes", f"{len(frame)}")
        return read(frame) if placed is None else placed.message

    def _fill(self, gather: list[memoryview]) -> int:
        """Receive until all of `gather` is full or the peer closes; returns the bytes missing."""
        missing = sum(map(len, gather))
        while missing:
            got = self._read(gather[:_IOV_MAX], _WAIT_ALL)
            if not got:
                break
            missing -= got
            gather = without(gather, got)
        return missing

    def _read(self, gather: list[memoryview], flags: int = 0) -> int:
        """Receive some bytes; returns how many, 0 when the peer closed."""
        if self._ahead:
            got = min(len(self._ahead), len(gather[0]))
            gather[0][:got], self._ahead = self._ahead[:got], self._ahead[got:]
            return got
        receive, shared = self._sock.recvmsg_into, self._shared
        if shared is None:
            return self._in_time(socket.SO_RCVTIMEO, lambda: receive(gather, 0, flags)[0])
        flags |= _CLOSE_ON_EXEC
        got, ancillary, *_ = self._in_time(
            socket.SO_RCVTIMEO, lambda: receive(gather, ANCILLARY_BYTES, flags)
        )
        shared.take_descriptors(ancillary)
        return got

    def _in_time(self, option: int, transfer: Callable[[], T]) -> T:
        """What `transfer` returns; `option` is the timeout of the kernel that ends it.

        The kernel is told less than is left, so that it need not be told again for each call.
        """
        self._arm(option, _TOLD)
        while True:
            try:
                return transfer()
            except BlockingIOError:
                self._armed_s[option] = 0.0
                self._arm(option, 1.0)

    def _arm(self, option: int, told: float) -> None:
        """Make the kernel give up before the deadline; raises when that has passed."""
        if self._deadline is None:
            return
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise BlockingIOError("deadline passed")
        if not _TOLD * _TOLD * left_s <= self._armed_s[option] <= left_s:
            told_s = self._armed_s[option] = told * left_s
            self._sock.setsockopt(socket.SOL_SOCKET, option, _timeval(told_s))


def _timeval(duration_s: float) -> bytes:
    """A `struct timeval` of at least one microsecond; the kernel takes zero for no timeout.

    The carry goes into the seconds: setsockopt refuses 1,000,000 microseconds with EDOM.
    """
    seconds, microseconds = divmod(int(duration_s * 1e6) + 1, 1_000_000)
    return _TIMEVAL.pack(seconds, microseconds)


def _tune(sock: socket.socket) -> None:
    sock.setblocking(True)
    buffer_bytes = _UNIX_BUFFER_BYTES
    if sock.family != socket.AF_UNIX:
        buffer_bytes = _TCP_BUFFER_BYTES
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A host that vanished sends no FIN; its connections end 90 s later.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_bytes)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
