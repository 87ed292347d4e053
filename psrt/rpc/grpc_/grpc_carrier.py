"""The gRPC carrier, client side: always for control, and for data when a job selects it.

gRPC in Python sends only `bytes`, so a message is joined once before it is sent and not copied on
arrival. A frame up to 4 MiB is one unary `Call`; `CallLarge` splits and streams a larger one. A
caller cannot foresee the size of a reply. If the server refuses a reply as too large for a unary
call, the call is repeated as `CallLarge` (repeatable by push key, like a retry), and the connection
uses `CallLarge` for this method from then on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from psrt.core.errors import ErrorCode, UnavailableError, WireError, from_code
from psrt.core.tracing import span
from psrt.rpc import pb
from psrt.rpc.access import identity, prove
from psrt.rpc.grpc_library import grpc
from psrt.rpc.status import ERROR_METADATA, from_grpc
from psrt.rpc.tls import why_refused
from psrt.rpc.traced_calls import span_of_carrier
from psrt.rpc.wire import (
    MAX_FRAME_BYTES,
    SPLIT_BYTES,
    Joiner,
    Message,
    check_size,
    decode,
    encode,
    split,
)

Metadata: TypeAlias = tuple[tuple[str, str], ...]

SERVICE = "psrt.v1.Pserver"
SESSION_METADATA = "psrt-session"
"""Metadata of each call by which a caller that has proved a token is found again."""

# The piece of a split message and a header of many parts both fit.
GRPC_OPTIONS: list[tuple[str, Any]] = [
    ("grpc.max_send_message_length", SPLIT_BYTES),
    ("grpc.max_receive_message_length", SPLIT_BYTES),
]
KEEPALIVE_OPTIONS: list[tuple[str, Any]] = [
    # A half-open link ends after 40 s, at either end. gRPC waits for the answer to a ping as long
    # as its `ping_timeout`, a minute unless set. Presence has no other traffic, so pings must be
    # allowed without data, and as often as they are sent.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.ping_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
]
CHANNEL_OPTIONS = [
    *GRPC_OPTIONS,
    # One connection per channel: gRPC would otherwise share one, with its back-off, among channels.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
]


def open_channel(where: str, options: list[tuple[str, Any]]) -> Any:
    """Open a channel, encrypted if this process has certificates."""
    tls = identity().tls
    if tls is None:
        return grpc.insecure_channel(where, options)
    files = tls.current()
    credentials = grpc.ssl_channel_credentials(files.ca, files.key, files.cert)
    return grpc.secure_channel(where, credentials, options)


class GrpcConnection:
    """One channel to `where`, connected at the first call; several threads may use `call`."""

    def __init__(self, where: str, max_bytes: int = MAX_FRAME_BYTES) -> None:
        self.where = where
        self._max_bytes = max_bytes
        self._channel = open_channel(where, CHANNEL_OPTIONS)
        # Without serializers the stubs send and return bytes.
        self._unary = self._channel.unary_unary(f"/{SERVICE}/Call")
        self._stream = self._channel.stream_stream(f"/{SERVICE}/CallLarge")
        self._large_replies: set[int] = set()
        self._metadata: Metadata | None = None

    def call(self, message: Message, timeout_s: float) -> Message:
        """Send `message` and wait for its reply; the reply may report an error in its header."""
        if self._metadata is None:
            self._metadata = admitted(self._unary, self.where, timeout_s)
        with span_of_carrier(message.header, self.where):
            return self._call(message, timeout_s)

    def _call(self, message: Message, timeout_s: float) -> Message:
        method = message.header.method
        refused = None
        if method not in self._large_replies:
            with span("frame"):
                parts = encode(message)
            if sum(len(part) for part in parts) <= SPLIT_BYTES:
                refused = self._send(
                    lambda: decode(self._unary(b"".join(parts), timeout_s, self._metadata))
                )
                if not _reply_too_large(refused):
                    return refused
        reply = self._send(lambda: self._call_large(message, timeout_s))
        if refused is not None and not _reply_too_large(reply):
            self._large_replies.add(method)
        return reply

    def abort(self) -> None:
        """End a call of another thread, which raises `UnavailableError`."""
        self._channel.close()

    def close(self) -> None:
        self._channel.close()

    def _call_large(self, message: Message, timeout_s: float) -> Message:
        check_size(sum(tensor.nbytes for tensor in message.tensors), self._max_bytes)
        joiner = Joiner(self._max_bytes)
        frames: Iterable[bytes] = self._stream(split(message), timeout_s, self._metadata)
        for frame in frames:
            joiner.add(frame)
        return joiner.message()

    def _send(self, call: Any) -> Message:
        try:
            reply: Message = call()
        except grpc.RpcError as error:
            reply = reported(error, self.where)
        if reply.header.error.code == ErrorCode.ACCESS_DENIED:
            self._metadata = None  # a pserver that was started again has no session
        return reply


def reported(error: grpc.RpcError, where: str) -> Message:
    """Return the error reply in the trailing metadata; raises if gRPC itself failed.

    A refused certificate is an `AccessError`.
    """
    for key, value in error.trailing_metadata() or ():
        if key == ERROR_METADATA:
            return Message(pb.Header(error=pb.Error.FromString(value)))
    failure = from_grpc(error, where)
    if isinstance(failure, UnavailableError):
        failure = why_refused(where, identity().tls) or failure
    raise failure from error


def admitted(unary: Any, where: str, timeout_s: float) -> Metadata:
    """Metadata of the calls of this process, which proves its token if it has one.

    Raises the error of a pserver that does not admit it.
    """
    if identity().token is None:
        return ()

    def call(header: pb.Header) -> pb.Header:
        try:
            reply = decode(unary(b"".join(encode(Message(header))), timeout_s))
        except grpc.RpcError as error:
            reply = reported(error, where)
        if reply.header.HasField("error"):
            failed = reply.header.error
            raise from_code(failed.code, failed.message, failed.hint)
        return reply.header

    return ((SESSION_METADATA, prove(call, where)),)


def reply_too_large(size_bytes: int) -> WireError:
    return WireError(
        f"The reply of {size_bytes} bytes is over the {SPLIT_BYTES} of a unary call.",
        code=ErrorCode.WIRE_TOO_LARGE,
        hint="Use CallLarge.",
    )


def _reply_too_large(reply: Message) -> bool:
    return bool(reply.header.error.code == ErrorCode.WIRE_TOO_LARGE)
