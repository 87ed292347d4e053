"""The stream carrier, client side: one connection, one call at a time.

The owner of a connection closes it after any failure (no reply in time, reset, malformed reply): a
late reply would otherwise answer the next call. A pserver that refuses a connection gives the
reason in a reply addressed to no call, and closes its end.
"""

from __future__ import annotations

import socket
import time

from psrt.core.errors import (
    AccessError,
    DeadlineError,
    ErrorCode,
    PsrtError,
    UnavailableError,
    WireError,
    from_code,
)
from psrt.rpc import pb
from psrt.rpc.access import identity, prove
from psrt.rpc.busy_poll import NEVER, BusyPoll
from psrt.rpc.hosts import split_endpoint
from psrt.rpc.shm import SharedMemory
from psrt.rpc.stream.sockets import FrameSocket
from psrt.rpc.tls import EncryptedSocket, connect_encrypted
from psrt.rpc.traced_calls import span_of_carrier
from psrt.rpc.wire import MAX_FRAME_BYTES, Message


class StreamConnection:
    """A connection, open from construction to `close`; `where` is `host:port` or a path."""

    def __init__(
        self,
        sock: socket.socket | EncryptedSocket,
        where: str,
        max_bytes: int = MAX_FRAME_BYTES,
        busy_poll: BusyPoll = NEVER,
        shared: SharedMemory | None = None,
    ) -> None:
        self.where = where
        self._is_open = False
        self._frames = FrameSocket(sock, max_bytes, busy_poll, shared)

    def call(self, message: Message, timeout_s: float) -> Message:
        """Send `message` and wait for its reply; the reply may report an error in its header."""
        self._frames.expire_at(time.monotonic() + timeout_s)
        try:
            if not self._is_open:
                self._open()
            with span_of_carrier(message.header, self.where):
                reply = self._exchange(message)
                if reply.header.error.code == ErrorCode.SEGMENT_REFUSED:  # nothing was executed
                    self._frames.share_no_more()
                    reply = self._exchange(message)
                return reply
        except BlockingIOError as error:
            raise DeadlineError(f"{self.where} did not reply within {timeout_s:.3f} s.") from error
        except OSError as error:
            raise UnavailableError(f"The connection to {self.where} was lost: {error}.") from error

    def abort(self) -> None:
        """End a call of another thread, which raises `UnavailableError`."""
        self._frames.abort()

    def close(self) -> None:
        self._frames.close()

    def _open(self) -> None:
        """Make the first call; raises the error of a pserver that refuses the connection."""

        def call(header: pb.Header) -> pb.Header:
            reply = self._exchange(Message(header)).header
            if reply.HasField("error"):
                raise self._unexpected(reply)
            return reply

        prove(call, self.where)
        self._is_open = True

    def _exchange(self, message: Message) -> Message:
        try:
            self._frames.send(message)
        except ConnectionError as lost:
            reply: Message | None = self._reason(lost)
        else:
            reply = self._frames.receive(message.into)
        if reply is None:
            raise UnavailableError(f"{self.where} closed the connection before it replied.")
        if reply.header.request_id != message.header.request_id:
            raise self._unexpected(reply.header)
        return reply

    def _unexpected(self, header: pb.Header) -> PsrtError:
        if header.HasField("error"):
            return from_code(header.error.code, header.error.message, header.error.hint)
        return WireError(
            f"{self.where} replied to another call than the one that was sent; the connection was "
            "closed.",
            hint="Install the same psrt release on trainers and pservers.",
        )

    def _reason(self, lost: ConnectionError) -> Message:
        """Receive the error reply that a pserver sends before it closes a refused connection."""
        try:
            reply = self._frames.receive()
        except AccessError:
            raise
        except (OSError, PsrtError):
            raise lost from None
        if reply is None:
            raise lost
        return reply


def connect_tcp(
    endpoint: str, timeout_s: float, max_bytes: int = MAX_FRAME_BYTES, busy_poll: BusyPoll = NEVER
) -> StreamConnection:
    """Connect to a data port, encrypted if this process has certificates."""
    try:
        sock = socket.create_connection(split_endpoint(endpoint), timeout_s)
    except OSError as error:
        raise UnavailableError(f"Cannot connect to {endpoint}: {error}.") from error
    if sock.getsockname() == sock.getpeername():
        # TCP lets a client connect to itself on a free ephemeral port; nobody else listens.
        sock.close()
        raise UnavailableError(f"Cannot connect to {endpoint}: nobody listens.")
    tls = identity().tls
    carried = sock if tls is None else connect_encrypted(sock, tls, endpoint, timeout_s)
    return StreamConnection(carried, endpoint, max_bytes, busy_poll)


def connect_unix(
    path: str,
    timeout_s: float,
    max_bytes: int = MAX_FRAME_BYTES,
    busy_poll: BusyPoll = NEVER,
    shared_bytes: int = 0,
) -> StreamConnection:
    """Connect to the Unix socket at `path`; `shared_bytes` bounds payloads in shared memory."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(timeout_s)
    try:
        sock.connect(path)
    except OSError as error:
        sock.close()
        raise UnavailableError(f"Cannot connect to {path}: {error}.") from error
    shared = SharedMemory(shared_bytes, agreed=True) if shared_bytes else None
    return StreamConnection(sock, path, max_bytes, busy_poll, shared)
