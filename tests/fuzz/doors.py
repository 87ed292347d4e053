"""Frames through the ports of a process: each door sends bytes over one carrier.

A door sends a few frames over a connection of its own, and waits until the other side has answered
or hung up. One that does neither within HANG_S hangs.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import socket
from collections.abc import Callable, Mapping, Sequence

import grpc

from psrt.rpc.grpc_.grpc_carrier import CHANNEL_OPTIONS, SERVICE
from psrt.rpc.hosts import split_endpoint
from psrt.rpc.methods import Method
from psrt.rpc.wire.preamble import preamble
from tests.fuzz.mutate import mutated
from tests.support.raw_stream import frame as valid_frame

HANG_S = 30.0
_GRPC_CALLS = 16
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
_REQUEST = b"GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n"


class HangError(Exception):
    """A connection that was neither answered nor closed."""


class Doors:
    """Doors to the addresses by name; frames come from `corpus`, drawn by `draw`."""

    def __init__(
        self, addresses: Mapping[str, str], corpus: Sequence[bytes], draw: random.Random
    ) -> None:
        self._addresses, self._corpus, self._draw = addresses, corpus, draw
        self._channels: dict[str, grpc.Channel] = {}
        made: dict[str, Callable[[str], int]] = {
            "stream": self._stream,
            "shuffle": self._stream,
            "unix": self._stream,
            "shared memory": self._shared,
            "grpc": self._grpc,
            "shuffle grpc": self._grpc,
            "http2": self._bytes,
            "http": self._bytes,
        }
        places = {"shared memory": "unix", "http2": "grpc"}
        self.by_name = {
            name: (door, addresses[places.get(name, name)])
            for name, door in made.items()
            if places.get(name, name) in addresses
        }

    def throw(self, name: str) -> int:
        """Send some frames through a door; returns how many. Raises `HangError`."""
        door, address = self.by_name[name]
        return door(address)

    def close(self) -> None:
        for channel in self._channels.values():
            channel.close()

    def _frame(self) -> bytes:
        return mutated(self._draw.choice(self._corpus), self._draw, self._corpus)

    def _stream(self, address: str) -> int:
        """Frames behind preambles, most of them behind the call OPEN."""
        sent = [self._with_preamble(self._frame()) for _ in range(self._draw.choice((1, 2, 8)))]
        opening = [valid_frame(Method.OPEN)] if self._draw.random() < 0.8 else []
        with _connected(address) as sock:
            return _exchange(sock, b"".join([*opening, *sent])) and len(sent)

    def _shared(self, address: str) -> int:
        """A frame whose payload is said to be in the memory that comes with it."""
        flags = self._draw.choice((7, 7, 7, 3, 1, 7 | 1 << 4, 7 | 15 << 4, 7 | 3 << 8))
        fds = [self._memory() for _ in range(self._draw.choice((0, 1, 1, 1, 2, 4)))]
        sent = self._with_preamble(self._frame(), flags)
        try:
            with _connected(address) as sock:
                sock.sendall(valid_frame(Method.OPEN))
                with contextlib.suppress(OSError):
                    socket.send_fds(sock, [sent], fds)
                return int(_exchange(sock, b""))
        finally:
            for fd in fds:
                os.close(fd)

    def _memory(self) -> int:
        if self._draw.random() < 0.1:
            return os.open("/dev/zero", os.O_RDWR)
        fd = os.memfd_create("fuzz", os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, self._draw.choice((0, 1, 4096, 1 << 20, 1 << 30)))
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, self._draw.choice((_SEALS, _SEALS, 0)))
        return fd

    def _with_preamble(self, frame: bytes, flags: int | None = None) -> bytes:
        size, draw = len(frame), self._draw
        if draw.random() < 0.1:
            size = draw.choice((0, 1, size + 1, 1 << 16, 1 << 30, (1 << 64) - 1))
        if flags is None:
            flags = draw.choice((0,) * 8 + (1, 2, 4, 7, 0xFFFF))
        head = preamble(size, draw.choice((1,) * 9 + (0xFFFF,)), flags)
        if draw.random() < 0.05:
            head = mutated(head, draw, self._corpus)
        return head + frame

    def _grpc(self, address: str) -> int:
        """Calls with frames as bytes."""
        channel = self._channels.get(address)
        if channel is None:
            channel = self._channels[address] = grpc.insecure_channel(address, CHANNEL_OPTIONS)
        unary = channel.unary_unary(f"/{SERVICE}/Call")
        large = channel.stream_unary(f"/{SERVICE}/CallLarge")
        calls = []
        for _ in range(_GRPC_CALLS):
            if self._draw.random() < 0.8:
                calls.append(unary.future(self._frame(), timeout=HANG_S))
            else:
                calls.append(large.future(iter([self._frame(), self._frame()]), timeout=HANG_S))
        for call in calls:
            if call.exception(HANG_S) and call.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                raise HangError(f"a call over gRPC to {address}")
        return len(calls)

    def _bytes(self, address: str) -> int:
        """Bytes that are nearly a request of HTTP, or the beginning of HTTP/2."""
        begin = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04" + bytes(5)
        seed = self._draw.choice((_REQUEST, begin))
        with _connected(address) as sock:
            return int(_exchange(sock, mutated(seed, self._draw, self._corpus)))


def _connected(address: str) -> socket.socket:
    if address.startswith("/"):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(HANG_S)
        sock.connect(address)
        return sock
    sock = socket.create_connection(split_endpoint(address), HANG_S)
    # A port in TIME_WAIT for each of so many connections: the host would have none left.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    return sock


def _exchange(sock: socket.socket, sent: bytes) -> bool:
    """Send bytes, and receive until the end; False if the other side had hung up before."""
    try:
        sock.sendall(sent)
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(1 << 16):
            pass
    except TimeoutError as late:
        raise HangError(
            f"{len(sent)} bytes to {sock.getpeername()!r}: {sent[:200].hex()}"
        ) from late
    except OSError:
        return False
    return True
