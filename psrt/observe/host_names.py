"""Names under which browsers may call a process.

A page of another site may let its own name resolve to an address of this host (DNS rebinding), and
then read what it finds here. The browser still sends that name as `Host`. IP addresses are safe:
they cannot be rebound.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable


class HostNames:
    """IP addresses, `localhost`, the name of this host, and `names`."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        known = "localhost", socket.gethostname(), *names
        self._names = frozenset(map(_plain, known)) - {""}

    def has(self, host: str) -> bool:
        """Return True if a header `Host` is good; the port is not compared.

        One without it is good: every browser sends it.
        """
        name = _plain(_without_port(host))
        is_own = name in self._names or name.endswith(".localhost")
        return not name or is_own or _is_address(name)


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0][1:]
    return host.partition(":")[0]


def _plain(name: str) -> str:
    return name.strip().rstrip(".").lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
