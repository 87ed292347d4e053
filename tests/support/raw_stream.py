"""Plain sockets to the stream port of a server, for bytes that no client sends."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

from psrt.core.types import Array
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.server import Server
from psrt.rpc.wire.frames import Message, decode, encode
from psrt.rpc.wire.preamble import PREAMBLE_BYTES, parse_preamble, preamble

WAIT_S = 10.0


def frame(method: Method, *tensors: Array) -> bytes:
    """A call with its preamble."""
    header = pb.Header(protocol=1, method=method, request_id=1)
    encoded = b"".join(encode(Message(header, list(tensors))))
    return preamble(len(encoded)) + encoded


def dial(server: Server) -> socket.socket:
    """A new connection to the first stream port."""
    host, _, port = server.data_endpoints[0].rpartition(":")
    return socket.create_connection((host, int(port)), WAIT_S)


@contextlib.contextmanager
def opened(server: Server) -> Iterator[socket.socket]:
    """A connection that has made its first call, OPEN."""
    with dial(server) as sock:
        sock.sendall(frame(Method.OPEN))
        head = sock.recv(PREAMBLE_BYTES, socket.MSG_WAITALL)
        sock.recv(parse_preamble(head).size_bytes, socket.MSG_WAITALL)
        yield sock


def everything(sock: socket.socket) -> bytes:
    """All bytes that come until the other side closes."""
    return b"".join(iter(lambda: sock.recv(1 << 16), b""))


def error_in(reply: bytes) -> pb.Error:
    """The error in the only frame of `reply`."""
    assert len(reply) == PREAMBLE_BYTES + parse_preamble(reply[:PREAMBLE_BYTES]).size_bytes
    return decode(reply[PREAMBLE_BYTES:]).header.error
