"""What the communicators of all modes have in common: the pservers they stand on, and their life.

    start ─▶ … ─▶ stop: the mode's own end, once; whoever asks again gets the same parameters
                  close: without a word, also after a failure

A failure that leaves pservers with different halves of something is for good: every later call
raises it again.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from psrt.communicator.base import Timeline, Versions
from psrt.communicator.requests import PserverGroup
from psrt.core.counters import Counters
from psrt.core.errors import InternalError, PsrtError
from psrt.core.types import F32

LEAST_S = 1.0
"""What a call at the end is given when those before it used up the time to stop."""


class BaseCommunicator(ABC):
    """`on_wait` is told which pserver `start` still waits for.

    `_versions` are those that gradients are computed on now.
    """

    one_call_step = False

    def __init__(self, pservers: PserverGroup, on_wait: Callable[[str], None]) -> None:
        self._pservers, self._on_wait = pservers, on_wait
        self._versions: Versions = {}
        self._final: dict[str, F32] | None = None
        self._failure: PsrtError | None = None
        self._closed = False

    @property
    def counters(self) -> Counters:
        return self._pservers.counters

    def watch(self, timeline: Timeline | None) -> None:
        self._pservers.timeline = timeline

    def stop(self, timeout_s: float) -> dict[str, F32]:
        """See `Communicator.stop`."""
        if self._final is None:
            try:
                self._final = self._last(timeout_s)
            finally:
                self.close()
        return self._final

    def close(self) -> None:
        self._closed = True
        self._pservers.close()

    @abstractmethod
    def _last(self, timeout_s: float) -> dict[str, F32]:
        """`flush`, and tell every pserver that this trainer has completed."""

    def _check(self) -> None:
        """Raise what failed for good, or that the communicator was stopped."""
        if self._failure is not None:
            raise self._failure
        if self._closed:
            raise InternalError("the communicator was used after it was stopped")

    @contextmanager
    def _for_good(self) -> Iterator[None]:
        """A failure inside is raised by every later call too."""
        try:
            yield
        except PsrtError as error:
            self._failure = error
            raise


def time_left(deadline: float) -> float:
    """Seconds until `deadline` of `time.monotonic`, but `LEAST_S` at least."""
    return max(deadline - time.monotonic(), LEAST_S)
