"""A reader of the pages of pservers and trainers while a workload runs."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from collections.abc import Sequence
from contextlib import closing

STATUS, METRICS = "/status.json", "/metrics"
EVERY_S = 1.0
"""Seconds between two looks at the status of the first process, as if its page were open."""
SCRAPED_EVERY = 5
"""Looks between two scrapes of all processes: three times as often as Prometheus by default."""
FLAGS = ("--log-format", "json", "--log-level", "info")
"""Further flags of a process that is looked into."""


def free_addresses(count: int) -> list[str]:
    """Addresses of this host on which nobody listens now."""
    with contextlib.ExitStack() as stack:
        made = (socket.create_server(("127.0.0.1", 0)) for _ in range(count))
        sockets = [stack.enter_context(each) for each in made]
        return [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]


class Onlooker:
    """Gets status and metrics of `addresses` inside a `with` block; `pages` counts them."""

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
        looks = 0
        while not self._ended.wait(self._every_s):
            scraped = self._addresses if looks % SCRAPED_EVERY == 0 else ()
            asked = [(each, STATUS) for each in self._addresses[:1]]
            asked += [(each, METRICS) for each in scraped]
            self.pages += sum(_answers(*each) for each in asked)
            looks += 1


def _answers(address: str, page: str) -> bool:
    """True if a process has sent the page; one that has not begun or has ended does not."""
    try:
        with closing(http.client.HTTPConnection(address, timeout=5)) as connection:
            connection.request("GET", page)
            answer = connection.getresponse()
            return answer.status == 200 and bool(answer.read())
    except OSError:
        return False
