"""The end of a training that trainer 0 has decided: the other trainers look for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from psrt.core.errors import PsrtError
from psrt.core.threads import CrashReport, start_thread

log = logging.getLogger("psrt.trainer")

LOOK_EVERY_S = 0.5
"""Seconds between two looks, each a call that takes a pserver some microseconds."""


class EarlyEnd:
    """Sets `ended` once `is_decided` returns True; a context in which a thread looks for it.

    `has_come` is True from then on, or from the start if an earlier process has ended. Unless it
    `looks`, it does nothing.
    """

    def __init__(
        self,
        is_decided: Callable[[], bool],
        ended: threading.Event,
        crashes: CrashReport,
        looks: bool = True,
        every_s: float = LOOK_EVERY_S,
        has_come: bool = False,
    ) -> None:
        self._is_decided, self._ended, self._every_s = is_decided, ended, every_s
        self._crashes, self._looks = crashes, looks
        self._closed = threading.Event()
        self.has_come = has_come

    def __enter__(self) -> EarlyEnd:
        if self.has_come:
            self._ended.set()
        elif self._looks:
            start_thread(self._look, "early end", self._crashes)
        return self

    def __exit__(self, *error: object) -> None:
        self._closed.set()

    def _look(self) -> None:
        while not self._closed.wait(self._every_s):
            try:
                self.has_come = self._is_decided()
            except PsrtError as error:  # training's own calls wait, or raise
                log.debug("cannot look for an early end: %s", error.message)
            if self.has_come:
                self._ended.set()
                return
