"""The end of a pserver's process: its reason, and the signals that ask for it or for a cut."""

from __future__ import annotations

import contextlib
import queue
import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType

from psrt.core.errors import InternalError, PsrtError
from psrt.core.threads import CrashReport

ABORT_LINGER_S = 10.0  # after an abort, so that trainers in mid-step still get the error
WAKE_S = 1.0  # Python handles a signal that came just before a wait only after that wait


class Ending:
    """The reason for the process to end, set by a signal, the service or a crashed thread.

    Handlers of signals take no lock that the interrupted thread may hold: news travel in a
    `SimpleQueue`, which allows that.
    """

    def __init__(self, stay: bool) -> None:
        self._stay = stay
        self._news: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._ends = self._has_crashed = False
        self._cuts_asked = self._signals = 0
        self.error: PsrtError | None = None
        self.crashes = CrashReport(self.crashed)

    def crashed(self, error: BaseException) -> None:
        """Record the `error` that ended a thread which the process needs."""
        self.error = InternalError(
            f"a thread of the pserver crashed: {error!r}. The pserver was ended.",
            hint="This is a defect in psrt; the traceback is in the pserver's log.",
        )
        self._has_crashed = True
        self._end()

    def job_ended(self, error: PsrtError | None) -> None:
        """Record that all trainers completed (None), or the error that ended the job."""
        if not self._stay:
            self.error = error
            self._end()

    def signalled(self, number: int, frame: FrameType | None) -> None:
        """Record SIGTERM or SIGINT."""
        self._signals += 1
        self._end()

    def cut_asked(self, number: int, frame: FrameType | None) -> None:
        """Record SIGUSR1."""
        self._cuts_asked += 1
        self._news.put(None)

    @property
    def is_signalled(self) -> bool:
        """True after SIGTERM or SIGINT."""
        return self._signals > 0

    def is_hurried(self) -> bool:
        """Return True if the process need not wait for a cut: a thread has crashed, or two signals
        came."""
        return self._has_crashed or self._signals > 1

    def wait(self, on_cut: Callable[[], None] = lambda: None) -> str:
        """Block until there is a reason; return it as text for the log.

        `on_cut` is called for each SIGUSR1 meanwhile.
        """
        while not self._ends:
            self._await_news(WAKE_S)
            while self._cuts_asked:
                self._cuts_asked -= 1
                on_cut()
        if not self.is_signalled and self.error is not None:
            self._linger()
        if self.is_signalled:
            return "a signal"
        return "all trainers completed" if self.error is None else self.error.code.name

    def _linger(self) -> None:
        """Wait for a signal, up to `ABORT_LINGER_S`."""
        deadline_s = time.monotonic() + ABORT_LINGER_S
        while not self.is_signalled and (left_s := deadline_s - time.monotonic()) > 0:
            self._await_news(min(left_s, WAKE_S))

    def _await_news(self, timeout_s: float) -> None:
        with contextlib.suppress(queue.Empty):
            self._news.get(timeout=timeout_s)

    def _end(self) -> None:
        self._ends = True
        self._news.put(None)


@contextlib.contextmanager
def signals_end(ending: Ending) -> Iterator[None]:
    """Let SIGTERM and SIGINT end the process in order, and SIGUSR1 ask for a cut; restore former
    handlers afterwards."""
    handlers = {
        signal.SIGTERM: ending.signalled,
        signal.SIGINT: ending.signalled,
        signal.SIGUSR1: ending.cut_asked,
    }
    former = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
