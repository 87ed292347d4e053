"""Shares of one host in what a pserver has for all of them, so that one cannot take everything."""

from __future__ import annotations

import threading
from collections import Counter

from psrt.core.errors import UnavailableError

HOST_SHARE = 0.75
"""Share of one host, unless a pserver has its own."""


class HostShares:
    """Amounts of `things` in use by each host, `most` at most. Any thread may call."""

    def __init__(self, things: str, most: int) -> None:
        self._things, self._most = things, most
        self._lock = threading.Lock()
        self._used: Counter[str] = Counter()

    def take(self, host: str, amount: int = 1) -> None:
        """Count an amount; raises `UnavailableError` if the host has some, and would have too much.

        One amount alone may be larger: other limits are for that.
        """
        with self._lock:
            used = self._used[host]
            if used and used + amount > self._most:
                raise UnavailableError(
                    f"Host {host} has {used} {self._things} at this pserver, and one host may have "
                    f"{self._most}; {amount} more were refused.",
                    hint="Spread the trainers over more hosts, use more pservers, or raise "
                    "max_host_share of this one.",
                )
            self._used[host] += amount

    def give_back(self, host: str, amount: int = 1) -> None:
        """Subtract an amount."""
        with self._lock:
            self._used[host] -= amount
            if not self._used[host]:
                del self._used[host]
