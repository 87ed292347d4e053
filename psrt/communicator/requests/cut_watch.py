"""A trainer's part in cuts: wait for a proposal, hold pushes back, report where it goes on.

In Sync proposals come with the replies of a round, so that all trainers take part behind the same
one. In the other modes a thread waits for them: a trainer that reads data or waits for slower ones
takes part at once, and its training thread computes on meanwhile.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeAlias

from psrt.communicator.requests.pserver_group import PserverGroup
from psrt.core.errors import ErrorCode, PsrtError
from psrt.core.threads import start_thread

log = logging.getLogger("psrt.communicator")

WATCH_S = 5.0
"""Length of one WATCH: a thread that has to end waits so long at most."""

Hold: TypeAlias = Callable[[float], AbstractContextManager[str]]
"""Waits, up to some seconds, until every push of ended steps was answered, and lets none start
inside the block. Its value is where the trainer goes on."""


def take_part(pservers: PserverGroup, number: int, hold: Hold) -> None:
    """Take part in cut `number`; a cut that is given up is logged, and training goes on."""
    try:
        with hold(0.4 * pservers.call_timeout_s) as position:
            pservers.cut(number, position, 0.4 * pservers.call_timeout_s)
    except PsrtError as error:
        if error.code not in (ErrorCode.CUT_GIVEN_UP, ErrorCode.DEADLINE):
            raise
        log.warning("%s", error)


class CutWatch:
    """The thread that waits for proposals of the first pserver; `start` it once connected."""

    def __init__(self, pservers: PserverGroup, hold: Hold) -> None:
        self._pservers, self._hold = pservers, hold
        self._ended = threading.Event()

    def start(self) -> None:
        start_thread(self._watch, "cuts", self._pservers.crashes)

    def close(self) -> None:
        """End the thread after its current call."""
        self._ended.set()

    def _watch(self) -> None:
        known = 0
        while not self._ended.is_set():
            try:
                number = self._pservers.watch(known, WATCH_S)
                if number > known and not self._ended.is_set():
                    known = number
                    take_part(self._pservers, number, self._hold)
            except PsrtError as error:  # the training thread's own calls report a lost pserver
                log.debug("no more cuts: %s", error)
                return
