"""A trainer's part in cuts: wait for a proposal, hold pushes back, report where it goes on.

In Sync proposals come with the replies of a round, so that all trainers take part behind the same
one. In the other modes a thread waits for them: a trainer that reads data or waits for slower ones
takes part at once, and its training thread computes on meanwhile.
In Geo it takes part at the end of a step, see `psrt.communicator.geo.cut_turns`.
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

AGAIN_S = 0.5
"""Wait after a WATCH that failed: the first pserver may be recovering."""

Hold: TypeAlias = Callable[[float], AbstractContextManager[str]]
"""Waits, up to some seconds, until every push of ended steps was answered, and lets none start
inside the block. Its value is where the trainer goes on."""


RESIZE_S = 3600.0
"""Longest wait for the end of a cut that changes the number of trainers. Pservers give up one that
takes longer than their `checkpoint_timeout_s`, so this is for one that hangs."""


def take_part(
    pservers: PserverGroup,
    number: int,
    hold: Hold,
    trainers: int = 0,
    on_resized: Callable[[], None] = lambda: None,
) -> bool:
    """Take part in cut `number`; True if all tables are frozen for it.

    A cut that is given up is logged, and training goes on. With `trainers` the job has begun anew
    with this number, and `on_resized` is called before pushes would go on.
    """
    timeout_s = 0.4 * pservers.call_timeout_s
    try:
        with hold(timeout_s) as position:
            pservers.cut(number, position, RESIZE_S if trainers else timeout_s, trainers)
            if trainers:
                on_resized()
    except PsrtError as error:
        log_given_up(error)
        return False
    return True


def log_given_up(error: PsrtError) -> None:
    """Log the error of a cut that this trainer gives up; raises any other error."""
    if error.code not in (ErrorCode.CUT_GIVEN_UP, ErrorCode.DEADLINE):
        raise error
    log.warning("%s", error)


class CutWatch:
    """The thread that waits for proposals of the first pserver; `start` it once connected.

    It calls `part` with the number of each cut to take part in.
    """

    def __init__(self, pservers: PserverGroup, part: Callable[[int], object]) -> None:
        self._pservers, self._part = pservers, part
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
                    self._part(number)
            except PsrtError as error:  # the training thread's own calls report a lost pserver
                log.debug("WATCH failed: %s", error)
                self._ended.wait(AGAIN_S)
