"""The thread of a process that notifies its service manager, and obeys SIGHUP.

All events pass through one queue to that thread: callers never wait, and may be handlers of
signals. Without a manager nothing is sent.

A heartbeat is sent after the process has answered `check`, on this thread. If the answer does not
come, none is sent, and the manager restarts the process.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from types import FrameType
from typing import Any, Self, TypeAlias

from psrt.core.errors import PsrtError
from psrt.core.service_manager.notices import Lines, ServiceNotices
from psrt.core.service_manager.notify_socket import NotifySocket
from psrt.core.threads import CrashReport, start_thread

log = logging.getLogger("psrt.service")

CLOSE_S = 2.0

Check: TypeAlias = Callable[[], str]
"""Returns progress in one line if the process works; else it raises, or does not return."""


class ServiceReporter:
    """Use as a context manager; `ready` and `stopping` may be called on any thread.

    `reload` is called on SIGHUP, unless a terminal controls the process: one that is closed sends
    SIGHUP to end it.
    """

    def __init__(
        self,
        socket: NotifySocket | None = None,
        watchdog_s: float = 0.0,
        reload: Callable[[], None] | None = None,
    ) -> None:
        self._socket, self._reload = socket, reload
        self._notices = ServiceNotices(watchdog_s)
        self._watchdog_s = watchdog_s
        self._check: Check = str
        self._events: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._former_handler: Any = None

    def ready(self, check: Check) -> None:
        """Report that the process serves, and is to be asked by `check` from now on."""
        self._events.put(partial(self._on_ready, check))

    def stopping(self, limit_s: float) -> None:
        """Report that the process ends, and may take `limit_s` for it."""
        self._events.put(lambda: self._send(self._notices.stopping(time.monotonic(), limit_s)))

    def __enter__(self) -> Self:
        if self._reload is not None and not _has_terminal():
            self._former_handler = signal.signal(signal.SIGHUP, self._on_hangup)
        if self._watchdog_s and not faulthandler.is_enabled():
            faulthandler.enable()  # the signal of a watchdog prints the stacks of all threads
        if self._socket is not None or self._former_handler is not None:
            self._thread = start_thread(self._run, "service manager", CrashReport())
        return self

    def __exit__(self, *ended: object) -> None:
        if self._former_handler is not None:
            signal.signal(signal.SIGHUP, self._former_handler)
        self.stopping(0.0)
        self._events.put(None)
        if self._thread is not None:
            self._thread.join(CLOSE_S)
        if self._socket is not None:
            self._socket.close()

    def _on_hangup(self, number: int, frame: FrameType | None) -> None:
        self._events.put(self._on_reload)

    # --- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            try:
                event = self._events.get(timeout=self._left_s())
            except queue.Empty:
                event = self._on_tick
            if event is None:
                return
            event()

    def _left_s(self) -> float | None:
        """Seconds until the next tick; None without a manager."""
        if self._socket is None:
            return None
        return max(0.0, self._notices.next_tick_s() - time.monotonic())

    def _on_ready(self, check: Check) -> None:
        self._check = check
        if self._socket is not None:
            status = self._checked() or "serves"
            self._send(self._notices.ready(time.monotonic(), status))

    def _on_tick(self) -> None:
        if time.monotonic() >= self._notices.next_tick_s():
            status = self._checked() if self._notices.is_checked else None
            self._send(self._notices.tick(time.monotonic(), status))

    def _on_reload(self) -> None:
        assert self._reload is not None
        self._send(self._notices.reloading(time.monotonic()))
        try:
            self._reload()
        except PsrtError as error:
            log.error("the configuration stays as it is: %s", error)
        self._send(self._notices.reloaded(time.monotonic()))

    def _checked(self) -> str | None:
        """The progress of the process; None if it does not work."""
        try:
            return self._check()
        except Exception as error:
            log.error("the process does not work, so its manager gets no heartbeat: %s", error)
            return None

    def _send(self, lines: Lines) -> None:
        if self._socket is not None and lines:
            self._socket.send(lines)


def reporter_for(
    environ: Mapping[str, str], reload: Callable[[], None] | None = None
) -> ServiceReporter:
    """The reporter of this process, by the variables that its manager has set."""
    address = environ.get("NOTIFY_SOCKET", "")
    socket = NotifySocket(address) if address[:1] in ("/", "@") and len(address) > 1 else None
    return ServiceReporter(socket, _watchdog_s(environ) if socket else 0.0, reload)


def _watchdog_s(environ: Mapping[str, str]) -> float:
    """Seconds within which the manager awaits a heartbeat of this process; 0 = it does not."""
    is_ours = environ.get("WATCHDOG_PID", "") in ("", str(os.getpid()))
    usec = environ.get("WATCHDOG_USEC", "")
    return int(usec) / 1e6 if is_ours and usec.isdecimal() else 0.0


def _has_terminal() -> bool:
    """Return True if a terminal controls this process."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
