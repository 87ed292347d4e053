"""`python -m tests.fuzz.crowd FACTS COUNT`: connections that are idle, or send a byte a second.

Half of them never send. They come from many addresses of loopback, as each host has a share only.
Those that the other side closes are opened again. Prints, every second, how many are established
and how many were closed, as JSON. Ends when its standard input does.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from psrt.rpc.hosts import split_endpoint
from psrt.rpc.methods import Method
from tests.support.raw_stream import frame

_TURN_S = 1.0
_AT_ONCE = 4_000
_HOSTS = 64
_ESTABLISHED = 1
_PORT_AT_CONNECT = 24  # IP_BIND_ADDRESS_NO_PORT: a port for each pair of addresses
_CALL = frame(Method.OPEN) + frame(Method.STATUS)


class Crowd:
    """Up to `count` connections to `addresses`."""

    def __init__(self, addresses: list[str], count: int) -> None:
        self._count = count
        self._places = itertools.cycle(addresses)
        self._open: dict[socket.socket, Iterator[int] | None] = {}
        self.closed = 0

    def __len__(self) -> int:
        """Connections that are established."""
        return sum(map(_is_established, self._open))

    def fill(self) -> None:
        """Open some connections that are missing."""
        for number in range(min(_AT_ONCE, self._count - len(self._open))):
            with contextlib.suppress(OSError):
                sock = _dial(next(self._places), f"127.1.0.{1 + number % _HOSTS}")
                self._open[sock] = iter(_CALL) if number % 2 else None

    def trickle(self) -> None:
        """Send one more byte over half of the connections; drop those that were closed."""
        for sock, rest in list(self._open.items()):
            try:
                byte = next(rest, None) if rest is not None else None
                if byte is not None:
                    sock.send(bytes([byte]))
                if sock.recv(1 << 16) == b"":
                    raise ConnectionResetError
            except BlockingIOError:
                pass
            except OSError:
                sock.close()
                del self._open[sock]
                self.closed += 1


def _is_established(sock: socket.socket) -> bool:
    """True if both sides have the connection: neither waits for it, nor has closed it."""
    if sock.family == socket.AF_UNIX:
        return True
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _ESTABLISHED


def _dial(address: str, source: str) -> socket.socket:
    is_unix = address.startswith("/")
    sock = socket.socket(socket.AF_UNIX if is_unix else socket.AF_INET)
    sock.setblocking(False)
    try:
        if not is_unix:
            sock.setsockopt(socket.IPPROTO_IP, _PORT_AT_CONNECT, 1)
            sock.bind((source, 0))
        sock.connect(address if is_unix else split_endpoint(address))
    except BlockingIOError:
        if is_unix:  # its backlog is full
            sock.close()
            raise
    except OSError:
        sock.close()
        raise
    return sock


def main(facts: Path, count: int) -> None:
    crowd = Crowd(list(json.loads(facts.read_text()).values()), count)
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    most = 0
    while not over.wait(_TURN_S):
        crowd.fill()
        crowd.trickle()
        count = len(crowd)
        most = max(most, count)
        print(json.dumps({"open": count, "most": most, "closed": crowd.closed}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
