"""A call that waits for a cut."""

from __future__ import annotations

import threading
from concurrent.futures import Future

from psrt.core.errors import PsrtError


class WaitingCaller:
    """A WATCH or CHECKPOINT; `future` has the number of a cut once it is answered.

    `trainers` is the number with which the job goes on from that cut, 0 = it stays.
    """

    def __init__(self, deadline_s: float, known: int = 0) -> None:
        self.future: Future[None] = Future()
        self.deadline_s, self.number, self.trainers = deadline_s, known, 0
        self._lock = threading.Lock()

    def answer(self, number: int, error: PsrtError | None = None) -> None:
        """Answer the call, or fail it; later answers are ignored."""
        with self._lock:
            if self.future.done():
                return
            self.number = number
            if error is None:
                self.future.set_result(None)
            else:
                self.future.set_exception(error)
