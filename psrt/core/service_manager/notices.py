"""The notices of a process to its service manager: pure decisions of (event, now) → lines.

    starting ──ready──▶ ready ──stopping──▶ stopping
                        │   ▲
               reloading└───┘reloaded

The lines are those of sd_notify(3). Times are seconds of CLOCK_MONOTONIC.
"""

from __future__ import annotations

import math

Lines = list[str]

STATUS_EVERY_S = 5.0
EXTEND_S = 15.0
"""Time that a process which ends asks for, several times until it has ended."""


class ServiceNotices:
    """The notices of one process; lines of one call belong into one message.

    A manager that awaits a heartbeat within `watchdog_s` gets one in half of that; 0 = it does not.
    """

    def __init__(self, watchdog_s: float = 0.0) -> None:
        self._every_s = min(STATUS_EVERY_S, watchdog_s / 2 or math.inf)
        self._has_watchdog = watchdog_s > 0
        self._is_ready = self._is_stopping = False
        self._status, self._ends_by_s, self._ticked_s = "", -math.inf, -math.inf

    def ready(self, now: float, status: str) -> Lines:
        """The process serves; again after an earlier call, only its status has changed."""
        if self._is_stopping:
            return []
        first = [] if self._is_ready else ["READY=1"]
        self._is_ready, self._ticked_s = True, now
        return [*first, *self._changed(status), *self._heartbeat()]

    def reloading(self, now: float) -> Lines:
        """The process begins to read its configuration again."""
        if not self._is_ready or self._is_stopping:
            return []
        return ["RELOADING=1", f"MONOTONIC_USEC={int(now * 1e6)}"]

    def reloaded(self, now: float) -> Lines:
        if not self._is_ready or self._is_stopping:
            return []
        return ["READY=1"]

    def stopping(self, now: float, limit_s: float) -> Lines:
        """The process ends, and may take `limit_s` for it."""
        if self._is_stopping:
            return []
        self._is_stopping, self._ends_by_s = True, now + limit_s
        self._ticked_s = now
        return ["STOPPING=1", *self._changed("ends"), *self._more_time(now)]

    def tick(self, now: float, status: str | None) -> Lines:
        """Some time has passed; `status` is None if the process does not work."""
        self._ticked_s = now
        if self._is_stopping:
            return [*self._more_time(now), *self._heartbeat()]
        if not self._is_ready:
            return []
        return [] if status is None else [*self._changed(status), *self._heartbeat()]

    def next_tick_s(self) -> float:
        """The time of the next `tick`."""
        return self._ticked_s + self._every_s

    @property
    def is_checked(self) -> bool:
        """True while a tick needs a status: the process has started and does not end."""
        return self._is_ready and not self._is_stopping

    def _changed(self, status: str) -> Lines:
        if status == self._status:
            return []
        self._status = status
        return [f"STATUS={status}"]

    def _heartbeat(self) -> Lines:
        """A heartbeat; the end of a process is limited by the time that it asks for."""
        return ["WATCHDOG=1"] if self._has_watchdog else []

    def _more_time(self, now: float) -> Lines:
        left_s = min(EXTEND_S, self._ends_by_s - now)
        return [f"EXTEND_TIMEOUT_USEC={int(left_s * 1e6)}"] if left_s > 0 else []
