"""The end of training by a signal: at once, or at a cut if the job makes cuts.

The trainer asks for a cut, trains on until it has taken part in it, and leaves: no step is lost,
and in Sync all trainers leave behind the same round. It waits `CUT_S` for that.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from psrt.communicator.base import Communicator
from psrt.core.errors import PsrtError
from psrt.core.threads import CrashReport, start_thread

log = logging.getLogger("psrt.trainer")

CUT_S = 30.0
"""Longest time from a signal to the cut at which a trainer leaves."""


class Leaving:
    """Sets `ended` some time after `begin`; use as a context manager around the training loop.

    `begin` is safe in a signal handler. `hurry` shortens waits for lost pservers.
    """

    def __init__(
        self,
        communicator: Communicator,
        ended: threading.Event,
        hurry: Callable[[], None],
        say: Callable[[str], None],
    ) -> None:
        self._communicator, self._ended = communicator, ended
        self._hurry, self._say = hurry, say
        self._begun: queue.SimpleQueue[bool] = queue.SimpleQueue()  # may be put to in a handler
        self._is_leaving = False
        self._cut, self._answered = 0, threading.Event()
        self._crashes = CrashReport(lambda error: ended.set())

    def begin(self) -> None:
        """Leave at a cut, or after the running step in a job without cuts."""
        self._hurry()
        if self._communicator.makes_cuts:
            self._is_leaving = True
            self._begun.put(True)
        else:
            self._ended.set()

    def complete_cut(self) -> int:
        """The cut that this trainer has asked for, once it is complete; 0 = there is none.

        Waits for it, `CUT_S` at most.
        """
        if self._is_leaving:
            self._answered.wait(CUT_S)
        return self._cut

    def __enter__(self) -> Self:
        if self._communicator.makes_cuts:
            self._communicator.on_cut(self._on_cut)
            start_thread(self._leave, "leaving", self._crashes)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._begun.put(False)

    def _on_cut(self, number: int) -> None:
        if self._is_leaving and not self._ended.is_set():
            self._say(f"leaves at cut {number}")
            self._ended.set()

    def _leave(self) -> None:
        if not self._begun.get():
            return
        start_thread(self._request, "cut", self._crashes)
        if not self._ended.wait(CUT_S):
            log.warning("leaves without a cut: it was not made within %.0f s", CUT_S)
        self._ended.set()

    def _request(self) -> None:
        try:
            self._cut = self._communicator.request_cut(CUT_S, self._communicator.taken_cut)
        except PsrtError as error:
            if not self._ended.is_set():
                log.warning("leaves without a cut: %s", error.message)
                self._ended.set()
        finally:
            self._answered.set()
