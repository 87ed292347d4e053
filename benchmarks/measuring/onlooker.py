"""A reader of the pages of pservers and trainers while a workload runs."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing

PAGES = ("/metrics", "/status.json")
EVERY_S = 1.0
"""Fifteen times as often as Prometheus scrapes by default."""
FLAGS = ("--log-format", "json", "--log-level", "info")
"""Further flags of a process that is looked into."""


def free_addresses(count: int) -> list[str]:
    """Addresses of this host on which nobody listens now."""
    with contextlib.ExitStack() as stack:
        made = (socket.create_server(("127.0.0.1", 0)) for _ in range(count))
        sockets = [stack.enter_context(each) for each in made]
        return [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]


class Onlooker:
    """Gets every page of `addresses` each second inside a `with` block; `pages` counts them."""

    def __init__(self, addresses: Sequence[str], every_s: float = EVERY_S) -> None:
        self.pages, self._every_s = 0, every_s
        self._addresses, self._ended = addresses, threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Onlooker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(self._every_s):
            self.pages += sum(_answers(*each) for each in self._all())

    def _all(self) -> Iterator[tuple[str, str]]:
        return ((address, page) for address in self._addresses for page in PAGES)


def _answers(address: str, page: str) -> bool:
    """True if a process has sent the page; one that has not begun or has ended does not."""
    try:
        with closing(http.client.HTTPConnection(address, timeout=5)) as connection:
            connection.request("GET", page)
            answer = connection.getresponse()
            return answer.status == 200 and bool(answer.read())
    except OSError:
        return False
