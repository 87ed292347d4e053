"""The socket of a service manager, of the protocol of sd_notify(3): a datagram with some lines.

These lines are our own: the package sdnotify has had no release since 2017, never closes its
socket, and hides errors.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence

log = logging.getLogger("psrt.service")

SEND_S = 5.0


class NotifySocket:
    """Sends lines to the manager at `address`, a path or, after an `@`, an abstract name."""

    def __init__(self, address: str) -> None:
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(SEND_S)
        self._has_failed = False

    def send(self, lines: Sequence[str]) -> None:
        """Send lines as one message; logs the first failure."""
        try:
            self._socket.sendto("\n".join(lines).encode(), self._address)
        except OSError as error:
            if not self._has_failed:
                log.warning("the service manager was not notified: %s", error)
            self._has_failed = True

    def close(self) -> None:
        self._socket.close()
