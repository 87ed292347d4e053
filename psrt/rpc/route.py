"""The destination of a client's calls: the pserver that serves its part, and how to dial it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from psrt.core.errors import PsrtError
from psrt.rpc import pb
from psrt.rpc.dialing import Dialer
from psrt.rpc.error_text import fenced
from psrt.rpc.pairs import PartAddress


class Failover(Protocol):
    """The reaction of a client to the end of its pserver, which another one may replace."""

    @property
    def is_deposed(self) -> bool:
        """True if no call may reach the present pserver, and no reply of it counts."""
        ...

    @property
    def has_begun(self) -> bool:
        """True once the trainer has joined: its tables exist."""
        ...

    def answered(self) -> None:
        """Record a reply."""
        ...

    def failed(self, error: PsrtError, epoch: int) -> bool:
        """React to a call without a reply from the pserver of `epoch`; True if the client was moved
        to another one."""
        ...


class Route:
    """The present place, and its reply to HELLO, once there is one; any thread calls this."""

    failover: Failover | None = None

    def __init__(self, endpoint: str, dialer: Callable[[str], Dialer]) -> None:
        self._dialer = dialer
        self.move(PartAddress(endpoint, 0))

    def move(self, place: PartAddress) -> None:
        """Lead to `place` from now on."""
        self.place, self.dial = place, self._dialer(place.endpoint)
        self.hello: pb.HelloReply | None = None

    def check(self, place: PartAddress) -> None:
        """Raise unless the pserver at `place` is the one to use, also behind its reply."""
        deposed = self.failover is not None and self.failover.is_deposed
        if deposed or place is not self.place:
            raise fenced(place.endpoint)

    def answered(self) -> None:
        """Record a reply."""
        if self.failover is not None:
            self.failover.answered()

    def failed(self, error: PsrtError, place: PartAddress) -> bool:
        """React to a call to `place` without a reply; True if this leads to another pserver now."""
        return self.failover is not None and self.failover.failed(error, place.epoch)
