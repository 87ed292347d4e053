"""Steps of a mode whose step is one call, numbered over all processes of a trainer.

A pserver that has a step of a former process is only read from, once the successor has computed the
step again for the others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias

from psrt.communicator.base import Versions
from psrt.communicator.requests import WHOLE, PserverGroup, Request, Settled
from psrt.rpc.methods import Method

Send: TypeAlias = Callable[[list[Request]], Versions]
"""Sends the requests of a step and waits for their replies."""


class RepeatedStep:
    """The last step of a trainer and the data's place behind it; `begin` once connected.

    `caught_up` is set once no pserver has parts of a later step: cuts wait for that.
    """

    def __init__(self, pservers: PserverGroup) -> None:
        self.caught_up = threading.Event()
        self._pservers = pservers
        self._step, self._behind = 0, ""

    def begin(self) -> None:
        """Go on behind the steps of former processes."""
        lineage = self._pservers.lineage
        self._ended(lineage.begun, lineage.position)

    def has(self, name: str, endpoint: int, bucket: int) -> bool:
        """True if a former process has pushed the running step to a bucket of a pserver."""
        return self._pservers.lineage.has(endpoint, bucket, self._step + 1)

    def end(self, requests: list[Request], send: Send) -> Versions:
        """End a step: `send` it to the pservers that lack it, pull from those that have it."""
        lineage, step = self._pservers.lineage, self._step + 1
        had = [each for each in requests if self.has("", each.endpoint, each.bucket)]
        needed = [each for each in requests if each not in had]
        settled, behind = Settled(self._step, self._behind), lineage.position
        lineage.stamp(needed, settled, {WHOLE: (step, step)}, behind)
        lineage.ended = step
        lineage.stamp_reads(had)
        versions = dict(self._pservers.call(Method.PULL, had)) if had else {}
        versions |= send(needed)
        self._ended(step, behind)
        return versions

    def _ended(self, step: int, behind: str) -> None:
        self._step, self._behind = step, behind
        self._pservers.lineage.ended = step
        if step >= self._pservers.lineage.repeated_to:
            self.caught_up.set()


__all__ = ["RepeatedStep"]
