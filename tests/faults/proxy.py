"""A proxy in front of a pserver that cuts, swallows and holds back bytes.

A `Gate` is one pserver's. All doors of it, TCP ports and a Unix socket, count bytes together, in
each direction: `up` to the pserver and `down` to trainers. Passed descriptors travel along. Between
two sockets two threads move bytes; a connection that ends on one side ends on the other.
"""

from __future__ import annotations

import array
import contextlib
import os
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Direction = Literal["up", "down"]
DIRECTIONS: tuple[Direction, ...] = ("up", "down")
CHUNK = 1 << 16
_RESET = struct.pack("ii", 1, 0)  # of SO_LINGER: close sends a reset


@dataclass(frozen=True)
class LinkFault:
    """At byte `at_byte` of a direction the connection that carries it is cut, or falls silent.

    A silent direction takes bytes and gives none, and does not end: the other side of a link that
    is half open.
    """

    direction: Direction
    at_byte: int
    swallows: bool

    def __str__(self) -> str:
        what = "swallows all" if self.swallows else "is cut"
        return f"the connection with byte {self.at_byte} {self.direction} {what}"


@dataclass
class Gate:
    """Faults of the links of one pserver, and what has passed."""

    faults: list[LinkFault] = field(default_factory=list)
    passed: dict[Direction, int] = field(default_factory=lambda: {"up": 0, "down": 0})
    struck: list[LinkFault] = field(default_factory=list)
    _held: set[Direction] = field(default_factory=set)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _is_over: bool = False

    def hold(self, *directions: Direction) -> None:
        """Forward nothing in these directions until `release`."""
        with self._changed:
            self._held.update(directions)

    def release(self) -> None:
        """Forward what waits, and all that comes."""
        with self._changed:
            self._held.clear()
            self._changed.notify_all()

    def end(self) -> None:
        """End all threads that wait; nothing passes any more."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def admit(self, direction: Direction, size: int) -> tuple[int, LinkFault | None]:
        """Bytes of the next `size` that may pass, and the fault behind them; waits if held."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or direction not in self._held)
            if self._is_over:
                raise ConnectionAbortedError
            before = self.passed[direction]
            for fault in self.faults:
                if fault.direction == direction and before <= fault.at_byte < before + size:
                    self.faults.remove(fault)
                    self.struck.append(fault)
                    self.passed[direction] = fault.at_byte
                    return fault.at_byte - before, fault
            self.passed[direction] = before + size
            return size, None


class FaultProxy:
    """The doors of one gate; `close` ends all connections and threads."""

    def __init__(self, gate: Gate, address: str = "127.0.0.1") -> None:
        self.gate, self._address = gate, address
        self._listeners: list[socket.socket] = []
        self._pairs: list[_Pair] = []
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._is_closed = False

    def tcp_door(self, target: Callable[[], str]) -> str:
        """Listen on a free port for connections to `target()`, a `host:port`."""
        listener = socket.create_server((self._address, 0), backlog=64)
        self._serve(listener, lambda: _connected(target()))
        return f"{self._address}:{listener.getsockname()[1]}"

    def unix_door(self, target: str, path: Path) -> str:
        """Listen at `path` for connections to the Unix socket `target`."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen(64)
        self._serve(listener, lambda: _connected(target))
        return str(path)

    def end_silent(self) -> None:
        """End connections that fell silent, as time-outs of TCP do once a peer has gone."""
        with self._lock:
            silent = [pair for pair in self._pairs if pair.is_silent]
        for pair in silent:
            pair.reset()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            pairs, listeners = list(self._pairs), list(self._listeners)
        self.gate.end()
        for listener in listeners:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for pair in pairs:
            pair.reset()
        for thread in self._threads:
            thread.join(10.0)

    def _serve(self, listener: socket.socket, connect: Callable[[], socket.socket]) -> None:
        self._listeners.append(listener)
        self._start(lambda: self._accept(listener, connect))

    def _accept(self, listener: socket.socket, connect: Callable[[], socket.socket]) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                pair = _Pair(self.gate, client, connect())
            except OSError:  # nobody listens there: the client sees a reset
                _reset(client)
                continue
            with self._lock:
                self._pairs.append(pair)
                is_late = self._is_closed
            if is_late:
                pair.reset()
                return
            for direction in DIRECTIONS:
                self._start(lambda direction=direction, pair=pair: pair.pump(direction))

    def _start(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, daemon=True)
        self._threads.append(thread)
        thread.start()


class _Pair:
    """A connection of a client, and the one to the pserver that its bytes go to."""

    def __init__(self, gate: Gate, client: socket.socket, pserver: socket.socket) -> None:
        self._gate = gate
        self._ends: dict[Direction, tuple[socket.socket, socket.socket]] = {
            "up": (client, pserver),
            "down": (pserver, client),
        }
        self._swallows: set[Direction] = set()

    @property
    def is_silent(self) -> bool:
        return bool(self._swallows)

    def pump(self, direction: Direction) -> None:
        """Move bytes until one side ends, or a fault strikes."""
        source, sink = self._ends[direction]
        try:
            while self._move(direction, source, sink):
                pass
            if direction not in self._swallows:
                self._gate.admit(direction, 0)  # an end waits for a held link, too
                sink.shutdown(socket.SHUT_WR)
        except OSError:
            if direction not in self._swallows:
                self.reset()

    def reset(self) -> None:
        for sock in self._ends["up"]:
            _reset(sock)

    def _move(self, direction: Direction, source: socket.socket, sink: socket.socket) -> bool:
        data, descriptors = _received(source)
        try:
            if not data:
                return False
            if direction in self._swallows:
                return True
            size, fault = self._gate.admit(direction, len(data))
            if size:
                _send(sink, data[:size], descriptors)
            if fault is None:
                return True
            if not fault.swallows:
                raise ConnectionResetError
            self._swallows.add(direction)
            return True
        finally:
            for descriptor in descriptors:
                os.close(descriptor)


def _received(source: socket.socket) -> tuple[bytes, list[int]]:
    if source.family != socket.AF_UNIX:
        return source.recv(CHUNK), []
    data, descriptors, _, _ = socket.recv_fds(source, CHUNK, 8)
    return data, descriptors


def _send(sink: socket.socket, data: bytes, descriptors: list[int]) -> None:
    """Send all; descriptors go with the first bytes."""
    if descriptors:
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        data = data[sink.sendmsg([data], ancillary) :]
    sink.sendall(data)


def _connected(target: str) -> socket.socket:
    if target.startswith("/"):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(target)
        return sock
    host, _, port = target.rpartition(":")
    sock = socket.create_connection((host, int(port)), 10.0)
    sock.settimeout(None)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _reset(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()
