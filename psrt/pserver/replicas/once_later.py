"""One call, some time after it was asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable

from psrt.core.threads import CrashReport, start_thread


class OnceLater:
    """Calls `then` on a thread `after_s` after the first `begin`, unless it is stopped before."""

    def __init__(
        self, name: str, after_s: float, then: Callable[[], None], crashes: CrashReport
    ) -> None:
        self._name, self._after_s, self._then, self._crashes = name, after_s, then, crashes
        self._beginning, self._stopped = threading.Lock(), threading.Event()

    def begin(self) -> None:
        if self._beginning.acquire(blocking=False):
            start_thread(self._run, self._name, self._crashes)

    def stop(self) -> None:
        self._stopped.set()

    def _run(self) -> None:
        if not self._stopped.wait(self._after_s):
            self._then()
