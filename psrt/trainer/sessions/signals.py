"""SIGTERM and Ctrl-C of a trainer: finish the step, complete, exit 128 + the signal.

While a `quietly` callback is set, a signal only calls it: the training loop ends after the running
step. At any other time (connecting, testing, saving) it raises `Interrupted`
in the main thread, which the session turns into the same orderly end. A second signal ends the
process at once. On exit the former handlers come back, and an `Interrupted` ends here.

Python runs handlers between two bytecodes of the main thread, so a signal that arrives just before
that thread blocks in a lock, or on another thread, would wait as long as the lock does: a minute,
when a pserver is lost. `Waker` interrupts the main thread until the handler has run.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

from psrt.core.threads import CrashReport, start_thread

SIGNALS = (signal.SIGTERM, signal.SIGINT)
NUDGE = signal.SIGURG  # ignored by default: one that comes too late does no harm
NUDGE_EVERY_S = 0.05


class Interrupted(BaseException):
    """Raised in the main thread by a signal; no `Exception`, so that only the session catches
    it."""


class Waker:
    """Interrupts the main thread while fewer `SIGNALS` were handled than have arrived.

    Arrivals are read at once from the pipe of `signal.set_wakeup_fd`, which is written by the C
    part of a handler, on whatever thread it runs.
    """

    def __init__(self, handled: Callable[[], int]) -> None:
        self._handled = handled
        self._closed = threading.Event()
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)
        self._former_handler = signal.signal(NUDGE, lambda number, frame: None)
        self._former_fd = signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        self._thread = start_thread(self._watch, "signals", CrashReport())

    def close(self) -> None:
        self._closed.set()
        signal.set_wakeup_fd(self._former_fd)
        os.close(self._write_end)
        self._thread.join()
        os.close(self._read_end)
        signal.signal(NUDGE, self._former_handler)

    def _watch(self) -> None:
        arrived, main = 0, threading.main_thread().ident
        assert main is not None
        while number := os.read(self._read_end, 1):
            arrived += number[0] in SIGNALS
            while self._handled() < arrived and not self._closed.wait(NUDGE_EVERY_S):
                signal.pthread_kill(main, NUDGE)


class StopSignals:
    """Use as a context manager in the main thread. `received` is the signal number, or 0.

    `on_signal` is called in the handler of the first signal.
    """

    def __init__(self, on_signal: Callable[[], None] = lambda: None) -> None:
        self.received, self._on_first = 0, on_signal
        self._quiet: Callable[[], None] | None = None
        self._former: dict[signal.Signals, Any] = {}
        self._handled = 0
        self._waker: Waker | None = None

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
        self._waker = Waker(lambda: self._handled)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if self._waker is not None:
            self._waker.close()
        for number, handler in self._former.items():
            signal.signal(number, handler)
        return kind is Interrupted

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._handled += 1
        if self.received:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.received = number
        self._on_first()
        if self._quiet is None:
            raise Interrupted(number)
        self._quiet()
