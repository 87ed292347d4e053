"""Pservers on real ports of 127.0.0.1, in this process."""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from psrt.pserver.serving.service import PserverService
from psrt.rpc.server import Server

WAIT_S = 30.0


@dataclass
class LivePserver:
    service: PserverService
    server: Server

    @property
    def endpoint(self) -> str:
        return self.server.endpoint


@contextlib.contextmanager
def live_pservers(count: int, port: int = 0, **settings: Any) -> Iterator[list[LivePserver]]:
    """`count` pservers that trainers may connect to, with `settings` of their services; stopped in
    the end."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(_live(port, settings)) for _ in range(count)]


@contextlib.contextmanager
def _live(port: int, settings: dict[str, Any]) -> Iterator[LivePserver]:
    service = PserverService(stripes=2, wait_timeout_s=WAIT_S, **settings)
    server = Server(service.handle, port=port)
    server.start()
    service.start()
    server.set_serving(True)
    try:
        yield LivePserver(service, server)
    finally:
        service.stop()
        server.stop(0.0)


_NOT_CHOSEN = (15_000, 32_000)


def free_port() -> int:
    """A port that nobody listens on, for as long as nobody takes it.

    It is none of those that systems choose from: a data port of a pserver, or the end of somebody's
    connection, would take one of them before it is listened on.
    """
    while True:
        port = random.SystemRandom().randrange(*_NOT_CHOSEN)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
