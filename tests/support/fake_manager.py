"""A service manager's socket for tests: records what a process sends to it."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Self

from tests.support.processes import DEADLINE_S


class FakeManager:
    """Use as a context manager; `variables` are for the environment of the process."""

    def __init__(self, directory: Path, watchdog_s: float = 0.0) -> None:
        self.path = directory / "notify.sock"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(self.path))
        self.variables = {"NOTIFY_SOCKET": str(self.path)}
        if watchdog_s:
            self.variables["WATCHDOG_USEC"] = str(int(watchdog_s * 1e6))
        self.lines: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self._socket.close()

    def wait_for(self, start: str, *, after: int = 0) -> str:
        """The first line with this start, not counting the `after` first ones."""
        deadline_s = time.monotonic() + DEADLINE_S
        while True:
            found = [line for line in self.lines[after:] if line.startswith(start)]
            if found:
                return found[0]
            self.receive(deadline_s - time.monotonic())

    def receive(self, timeout_s: float) -> bool:
        """Record the next message; False if none comes in time and it was allowed not to."""
        self._socket.settimeout(max(timeout_s, 0.01))
        self.lines += self._socket.recv(65536).decode().split("\n")
        return True

    def rest(self) -> list[str]:
        """All lines, once the process has ended."""
        try:
            while True:
                self.receive(0.01)
        except TimeoutError:
            return self.lines
