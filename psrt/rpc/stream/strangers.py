"""Connections that have not made their first call, oldest first, with their hosts."""

from __future__ import annotations

from collections import Counter

from psrt.rpc.stream.sockets import FrameSocket


class Strangers:
    """The strangers of one server; callers hold a lock."""

    def __init__(self) -> None:
        self._hosts: dict[FrameSocket, str] = {}

    def __len__(self) -> int:
        return len(self._hosts)

    def add(self, frames: FrameSocket, host: str) -> None:
        self._hosts[frames] = host

    def discard(self, frames: FrameSocket) -> None:
        """Remove one, if it is there."""
        self._hosts.pop(frames, None)

    def has_of(self, host: str) -> bool:
        return host in self._hosts.values()

    def send_away(self, host: str = "") -> None:
        """End the oldest one of `host`, by default of the host that has most of them."""
        host = host or Counter(self._hosts.values()).most_common(1)[0][0]
        oldest = next(frames for frames, its in self._hosts.items() if its == host)
        del self._hosts[oldest]
        oldest.abort()
