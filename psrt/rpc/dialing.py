"""New connections of a client, and the choice of their carrier.

HELLO goes over gRPC to the endpoint of the pserver; its reply names the data ports. On the same
host the client takes the Unix socket, which moves 64 MiB two to three times as fast as TCP.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

from psrt.rpc import pb
from psrt.rpc.busy_poll import NEVER, BusyPoll
from psrt.rpc.grpc_ import GrpcConnection, GrpcPresence
from psrt.rpc.hosts import host_id, reachable
from psrt.rpc.stream import connect_tcp, connect_unix
from psrt.rpc.wire import MAX_FRAME_BYTES, Message


class Connection(Protocol):
    """The interface of every carrier; the conformance suite tests all of them.

    `call` raises `UnavailableError` when the connection cannot be made or breaks, `DeadlineError`
    when no reply came in time, `WireError` when the reply is malformed. After any error, `close`
    the connection.
    """

    where: str

    def call(self, message: Message, timeout_s: float) -> Message: ...

    def abort(self) -> None:
        """End a call of another thread, which raises `UnavailableError`."""
        ...

    def close(self) -> None: ...


class LastingCall(Protocol):
    """A call that stays open as long as this process lives, or until `close`."""

    def close(self) -> None: ...


Carrier: TypeAlias = Literal["stream", "grpc"] | Callable[[str], Connection]
"""A carrier by name, or a function that connects to an endpoint: tests stay in one process."""

# With None the connection is for HELLO; with its reply, for data. The float bounds the connect.
Dialer: TypeAlias = Callable[[pb.HelloReply | None, float], Connection]


def dialer(
    carrier: Carrier,
    endpoint: str,
    spread: int = 0,
    max_bytes: int = MAX_FRAME_BYTES,
    busy_poll: BusyPoll = NEVER,
) -> Dialer:
    """Return a function that opens connections to `endpoint`.

    `spread` (a trainer id) selects the first of the data ports; later connections take the next.
    """
    ports = itertools.count(spread)

    def dial(hello: pb.HelloReply | None, timeout_s: float) -> Connection:
        if not isinstance(carrier, str):
            return carrier(endpoint)
        if hello is None or carrier == "grpc":
            return GrpcConnection(endpoint, max_bytes)
        if hello.unix_path and hello.host_id == host_id() and os.path.exists(hello.unix_path):
            shared_bytes = hello.shared_bytes
            return connect_unix(hello.unix_path, timeout_s, max_bytes, busy_poll, shared_bytes)
        port = hello.data_endpoints[next(ports) % len(hello.data_endpoints)]
        return connect_tcp(reachable(port, endpoint), timeout_s, max_bytes, busy_poll)

    return dial


def lasting_call(carrier: Carrier, endpoint: str, attend: Message) -> LastingCall | None:
    """Open a call of gRPC by the request `attend`; connections of other carriers last anyway."""
    return GrpcPresence(endpoint, attend) if carrier == "grpc" else None
