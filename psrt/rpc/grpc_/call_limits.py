"""Limits of the calls of a gRPC server: all of them, and those of one host."""

from __future__ import annotations

from psrt.core.errors import UnavailableError
from psrt.rpc.host_shares import HOST_SHARE, HostShares
from psrt.rpc.unfinished import UnfinishedFrames

MOST_CALLS = 4096
"""Limit of concurrent calls, each with its message in memory: a gRPC channel carries any number of
calls, a connection of the stream carrier one."""


class CallLimits:
    """Limits of the calls of one server; a host has `host_share` of all."""

    def __init__(
        self,
        max_bytes: int,
        unfinished: UnfinishedFrames,
        host_share: float = HOST_SHARE,
        most_calls: int = MOST_CALLS,
    ) -> None:
        self.max_bytes, self.unfinished, self.most_calls = max_bytes, unfinished, most_calls
        self.hosts = HostShares("gRPC calls under way", max(1, int(host_share * most_calls)))

    def full(self, under_way: int) -> UnavailableError | None:
        """The error of the last of so many calls, None = it may be served."""
        if under_way <= self.most_calls:
            return None
        return UnavailableError(
            f"This pserver has {self.most_calls} gRPC calls under way; one more was refused.",
            hint="Let trainers use the stream carrier, or use more pservers.",
        )

    def take(self, under_way: int, host: str) -> UnavailableError | None:
        """Count a call of `host`, unless it is one too many: then returns the error."""
        full = self.full(under_way)
        if full is None:
            try:
                self.hosts.take(host)
            except UnavailableError as error:
                return error
        return full
