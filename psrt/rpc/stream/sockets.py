"""Frames over a connected socket: both ends of the stream carrier use this.

Sockets stay blocking: one `sendmsg` sends a gather list of header and tensor memory. The first read
takes the bytes that have arrived, which is all of a small frame. The rest of a large frame follows
with MSG_WAITALL, straight into the buffer of its tensors or into arrays that the caller named
(`psrt.rpc.wire.receive_into`). The buffer of a very large frame grows as its bytes arrive, unless
the caller named arrays and so expects the size. Deadlines are the kernel's SO_RCVTIMEO and
SO_SNDTIMEO, because a Python socket timeout would poll before every call. One thread at a time uses
a `FrameSocket`; `close_reading` and `abort` may be called from another.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TypeVar

from psrt.core.errors import PsrtError
from psrt.core.tracing import span
from psrt.core.types import F32, U8, Array, Shape
from psrt.rpc.busy_poll import NEVER, BusyPoll
from psrt.rpc.shm import ANCILLARY_BYTES, Outgoing, SharedMemory
from psrt.rpc.stream.socket_options import tune
from psrt.rpc.tls import EncryptedSocket
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
    skip_bytes,
    truncated,
)

T = TypeVar("T")

_IOV_MAX = os.sysconf("SC_IOV_MAX")
_TIMEVAL = struct.Struct("ll")
_DRAIN_S = 1.0
_CLOSE_ON_EXEC, _WAIT_ALL = int(socket.MSG_CMSG_CLOEXEC), int(socket.MSG_WAITALL)
_BEGIN = ALIGNMENT - PREAMBLE_BYTES  # of a preamble in a buffer: the frame behind it is aligned
_FIRST_END = 60 * 1024  # of the first read in a buffer: targets of the rest are not known before
_ARMED_PART = 0.8  # of the time left: the timeout that the kernel gets


class FrameSocket:
    """Sends and receives whole messages; `max_bytes` bounds a frame in both directions.

    With `shared`, payloads may be in memory that both ends map instead of the socket. `unfinished`
    counts, at a pserver, the bytes of a frame that is expected, and returns by when. Bytes `ahead`
    were received before.
    """

    def __init__(
        self,
        sock: socket.socket | EncryptedSocket,
        max_bytes: int,
        busy_poll: BusyPoll = NEVER,
        shared: SharedMemory | None = None,
        unfinished: Callable[[int], AbstractContextManager[float]] | None = None,
        ahead: bytes = b"",
    ) -> None:
        self._sock = sock
        self._max_bytes = self.receive_limit = max_bytes
        self._unfinished = unfinished
        self._busy_poll = busy_poll
        self._latency = busy_poll.tracker()
        self._shared = shared
        self._buffers = ReceiveBuffers()
        self._ahead = ahead  # bytes received behind the last frame
        self._deadline: float | None = None
        self._armed_s = {socket.SO_RCVTIMEO: 0.0, socket.SO_SNDTIMEO: 0.0}
        tune(sock)

    def expire_at(self, deadline: float | None) -> None:
        """After this time of `time.monotonic`, `send` and `receive` raise `BlockingIOError`."""
        self._deadline = deadline

    def send(self, message: Message) -> None:
        shared = self._shared
        with span("reply" if message.header.reply else "frame"):
            outgoing = Outgoing(encode(message)) if shared is None else shared.outgoing(message)
        parts, ancillary = outgoing.parts, outgoing.ancillary
        size_bytes = sum(map(len, parts))
        check_size(size_bytes, self._max_bytes)
        parts[0] = preamble(size_bytes, flags=outgoing.flags) + parts[0]
        while parts:
            some = parts[:_IOV_MAX]
            sent = self._in_time(socket.SO_SNDTIMEO, partial(self._sock.sendmsg, some, ancillary))
            parts, ancillary = skip_bytes(parts, sent), []
        outgoing.sent()

    def empty(self, shape: Shape) -> F32:
        """Return memory for a tensor of the next message, where sending it needs no copy."""
        return empty(shape) if self._shared is None else self._shared.empty(shape)

    def share_no_more(self) -> None:
        """Send payloads through the socket from now on."""
        if self._shared is not None:
            self._shared.share_no_more()

    def receive(self, into: Sequence[Array | None] = ()) -> Message | None:
        """Return the next message, or None when the peer closed between two frames.

        Tensor i is received into `into[i]` if it is large and dtype and shape agree; a call that
        fails may have written to it.
        """
        buffer = self._buffers.take(_FIRST_END)
        got = self._begin(buffer[:_FIRST_END] if into else buffer)
        if not got:
            return None
        if got < PREAMBLE_BYTES:
            raise truncated(f"{got} bytes", f"a preamble of {PREAMBLE_BYTES}")
        announced = parse_preamble(buffer[_BEGIN:ALIGNMENT], self.receive_limit)
        read = decode if self._shared is None else self._shared.decoder(announced.flags)
        end, got_end = ALIGNMENT + announced.size_bytes, _BEGIN + got
        if end <= got_end:
            self._ahead = buffer[end:got_end].tobytes() + self._ahead
            return read(buffer[ALIGNMENT:end])
        if self._unfinished is None:
            return self._rest(buffer, got_end, end, into, read)
        until = self._deadline
        with self._unfinished(announced.size_bytes) as of_frame:
            self._deadline = of_frame if until is None else min(until, of_frame)
            message = self._rest(buffer, got_end, end, into, read)
        self._deadline = until
        return message

    def drain(self) -> None:
        """Shut down sending and discard input for at most a second, after a refusal.

        Closing with unread input would reset the connection and lose the error reply.
        """
        self._deadline = time.monotonic() + _DRAIN_S
        scratch = memoryview(bytearray(64 * 1024))
        with contextlib.suppress(OSError, PsrtError):  # too many descriptors are an error, too
            self._sock.shutdown(socket.SHUT_WR)
            while self._read([scratch]):
                pass

    def close_reading(self) -> None:
        """End a `receive` that waits for the next frame; a running call still replies."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RD)

    def abort(self) -> None:
        """Wake threads that block on this socket, with an error."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._sock.close()
        if self._shared is not None:
            self._shared.close()

    def _begin(self, buffer: U8) -> int:
        """Receive a preamble and the bytes behind it that have arrived; returns their number."""
        view = buffer.data[_BEGIN:]
        got = self._await([view])
        while 0 < got < PREAMBLE_BYTES:
            received = self._read([view[got:]])
            if not received:
                break
            got += received
        return got

    def _await(self, gather: list[memoryview]) -> int:
        """Run the first `_read` of a message, which may wait for long."""
        began = time.monotonic()
        if self._latency.is_quick and not self._ahead:
            self._busy_poll.poll(self._sock.fileno())
        got = self._read(gather)
        self._latency.record(time.monotonic() - began)
        return got

    def _make_room(self, buffer: U8, got: int, end: int, *, trusted: bool) -> tuple[U8, int]:
        """Return a buffer of at least `end` bytes with the bytes received, and their number.

        Unless the size is `trusted`, the buffer grows as further bytes arrive.
        """
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
        self,
        buffer: U8,
        got_end: int,
        end: int,
        into: Sequence[Array | None],
        read: Callable[[U8], Message],
    ) -> Message:
        """Receive up to byte `end` of `buffer`, or of a larger one, and decode the frame."""
        if end > len(buffer):
            buffer, got_end = self._make_room(buffer, got_end, end, trusted=bool(into))
        if read is not decode:
            into = ()  # the tensors are not in the frame
        frame, got = buffer[ALIGNMENT:end], got_end - ALIGNMENT
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
            gather = skip_bytes(gather, got)
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
        """Run `transfer` until the deadline; `option` is the kernel's timeout that ends it.

        The timeout is shorter than the time left, so that most calls need not set it again.
        """
        self._arm(option, _ARMED_PART)
        while True:
            try:
                return transfer()
            except BlockingIOError:
                self._armed_s[option] = 0.0
                self._arm(option, 1.0)

    def _arm(self, option: int, part: float) -> None:
        """Set the kernel's timeout to `part` of the time left; raises once the deadline passed."""
        if self._deadline is None:
            return
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise BlockingIOError("deadline passed")
        if not _ARMED_PART * _ARMED_PART * left_s <= self._armed_s[option] <= left_s:
            armed_s = self._armed_s[option] = part * left_s
            self._sock.setsockopt(socket.SOL_SOCKET, option, _timeval(armed_s))


def _timeval(duration_s: float) -> bytes:
    """A `struct timeval` of at least one microsecond; zero would mean no timeout to the kernel.

    The carry goes into the seconds: setsockopt refuses 1,000,000 microseconds with EDOM.
    """
    seconds, microseconds = divmod(int(duration_s * 1e6) + 1, 1_000_000)
    return _TIMEVAL.pack(seconds, microseconds)
