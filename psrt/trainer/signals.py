"""SIGTERM and Ctrl-C of a trainer: finish the step, tell the pservers, exit 128 + the signal.

While a `quietly` callback is set, a signal calls it and nothing else happens: the training loop
ends after the running step. At any other time (connecting, testing, saving) it raises `Interrupted`
in the main thread, which the session turns into the same orderly end. A second signal ends the
process at once. On exit the former handlers come back, and an `Interrupted` ends here.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Interrupted(BaseException):
    """Not an `Exception`: nothing but the session may take it for an error and go on."""


class StopSignals:
    """Use as a context manager in the main thread. `received` is the signal number, or 0."""

    def __init__(self) -> None:
        self.received = 0
        self._quiet: Callable[[], None] | None = None
        self._former: dict[signal.Signals, Any] = {}

    @property
    def exit_code(self) -> int:
        return 128 + self.received if self.received else 0

    @contextmanager
    def quietly(self, stop: Callable[[], None]) -> Iterator[None]:
        """Within the block a signal calls `stop` instead of raising."""
        self._quiet = stop
        try:
            yield
        finally:
            self._quiet = None

    def __enter__(self) -> Self:
        self._former = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        for number, handler in self._former.items():
            signal.signal(number, handler)
        return kind is Interrupted

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.received:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.received = number
        if self._quiet is None:
            raise Interrupted(number)
        self._quiet()
