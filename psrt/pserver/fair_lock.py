"""A lock that a thread which takes it again and again cannot keep from the others."""

from __future__ import annotations

import threading
from types import TracebackType


class FairLock:
    """Whoever waits stands in the door: it holds `_door` while it waits for `_inside`.

    A plain lock goes to whoever asks first after the release, which is the thread that has just
    released it; here that one finds the door taken. So work in slices, each under the lock, lets
    others in between.
    """

    def __init__(self) -> None:
        self._door = threading.Lock()
        self._inside = threading.Lock()

    def __enter__(self) -> None:
        with self._door:
            self._inside.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._inside.release()
