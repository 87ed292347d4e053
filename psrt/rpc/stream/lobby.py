"""Listeners, and their connections that have sent nothing yet: one thread for all of them.

A connection leaves with the preamble of its first call, to a thread of its own. Until then it costs
a descriptor, so thousands of idle and slow ones take no time from others. Over TCP the kernel wakes
the lobby once the whole preamble is there; over a Unix socket its bytes are kept as they come.

    listener ─accept─▶ lobby ─first preamble─▶ serve
                         └─ after OPEN_S, or to make room ─▶ closed
"""

from __future__ import annotations

import contextlib
import errno
import logging
import resource
import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from psrt.core.errors import AccessError
from psrt.core.threads import CrashReport, start_thread
from psrt.rpc.serving import Peer
from psrt.rpc.wire import PREAMBLE_BYTES

log = logging.getLogger("psrt.rpc")
audit = logging.getLogger("psrt.audit")

OPEN_S = 10.0
"""Time from accepting a connection until its first call has arrived."""
MOST_WAITING = 4096
"""Connections in a lobby; then the oldest of the host that has most of them makes room."""
DESCRIPTORS_SHARE = 0.25
"""Share of the descriptors that a process may open, where that is less."""

_ACCEPT_PAUSE_S, _AT_ONCE = 0.1, 64
_NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)


@dataclass(eq=False, slots=True)
class Guest:
    """A connection in the lobby, until `ends_s` of `time.monotonic`.

    `ahead` has bytes that were received of a preamble that has not come as a whole.
    """

    sock: socket.socket
    peer: Peer
    ends_s: float
    ahead: bytes = b""


class Lobby:
    """The listeners of one server, from the first `open` to `close`.

    `meet` returns the peer of a new connection, or raises `AccessError`. `serve` gets those that
    have begun to call. Except `open`, `close` and `join`, all is done by the thread of the lobby. A
    host may have `host_share` of the places.
    """

    def __init__(
        self,
        meet: Callable[[socket.socket, object], Peer],
        serve: Callable[[Guest], None],
        host_share: float,
        crashes: CrashReport,
    ) -> None:
        self._meet, self._serve = meet, serve
        self._host_share, self._crashes = host_share, crashes
        self._selector = selectors.DefaultSelector()
        self._listeners: list[socket.socket] = []
        self._guests: dict[Guest, None] = {}  # oldest first
        self._of_host: dict[str, dict[Guest, None]] = {}
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def __len__(self) -> int:
        return len(self._guests)

    def open(self, listener: socket.socket, name: str) -> None:
        """Accept connections from now on; the name is for log lines."""
        listener.setblocking(False)
        self._listeners.append(listener)
        self._selector.register(listener, selectors.EVENT_READ, (listener, name))
        if self._thread is None:
            self._thread = start_thread(self._run, f"psrt-accept-{name}", self._crashes)

    def close(self) -> None:
        """Close all listeners, and the connections that wait."""
        self._closing.set()
        for listener in self._listeners:
            # Closing alone does not wake a thread that waits.
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)

    def join(self, timeout_s: float) -> None:
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._closing.is_set():
            for key, _ in self._selector.select(self._wait_s()):
                if isinstance(key.data, Guest):
                    self._begin(key.data)
                else:
                    self._accept(*key.data)
            self._send_late_away(time.monotonic())
        for each in list(self._guests):
            self._send_away(each)
        for listener in self._listeners:
            listener.close()
        self._selector.close()

    def _wait_s(self) -> float | None:
        """Time until the first guest has to go."""
        first = next(iter(self._guests), None)
        return None if first is None else max(0.0, first.ends_s - time.monotonic())

    def _accept(self, listener: socket.socket, name: str) -> None:
        """Accept some connections, so that guests are not kept waiting."""
        with contextlib.suppress(BlockingIOError):
            for _ in range(_AT_ONCE):
                try:
                    self._enter(*listener.accept(), name)
                except BlockingIOError:
                    raise
                except (OSError, MemoryError) as error:
                    self._failed(error, name)
                    return

    def _failed(self, error: OSError | MemoryError, name: str) -> None:
        """No descriptors, no memory, or the caller hung up: none may end the listener."""
        if self._closing.is_set():
            return
        if self._guests and getattr(error, "errno", 0) in _NO_DESCRIPTORS:
            self._send_away(self._oldest())
            return
        log.warning("accept on %s failed: %s", name, error)
        self._closing.wait(_ACCEPT_PAUSE_S)

    def _enter(self, sock: socket.socket, address: object, name: str) -> None:
        try:
            peer = self._meet(sock, address)
        except AccessError as error:
            audit.warning("refused %s: %s", name, error.message)
            sock.close()
            return
        self._make_room(peer.host)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, PREAMBLE_BYTES)
        guest = Guest(sock, peer, time.monotonic() + OPEN_S)
        self._guests[guest] = None
        self._of_host.setdefault(peer.host, {})[guest] = None
        self._selector.register(sock, selectors.EVENT_READ, guest)

    def _make_room(self, host: str) -> None:
        most = _most_waiting()
        if len(self._of_host.get(host, ())) >= max(1, int(self._host_share * most)):
            self._send_away(next(iter(self._of_host[host])))
        elif len(self._guests) >= most:
            self._send_away(self._oldest())

    def _oldest(self) -> Guest:
        """The oldest guest of the host that has most of them."""
        most = max(self._of_host.values(), key=lambda guests: len(guests))
        return next(iter(most))

    def _begin(self, guest: Guest) -> None:
        """Let a guest go on that has sent a preamble; one that has hung up needs no thread."""
        if guest not in self._guests:
            return  # it made room for another in this turn
        try:
            has_begun = _has_begun(guest)
            if has_begun is None:
                return
            self._leave(guest)
            if has_begun:
                self._serve(guest)
                return
        except (OSError, MemoryError) as error:
            log.debug("connection of %s lost: %s", guest.peer, error)
        if guest in self._guests:
            self._leave(guest)
        guest.sock.close()

    def _send_late_away(self, now_s: float) -> None:
        while (first := next(iter(self._guests), None)) is not None and first.ends_s <= now_s:
            self._send_away(first)

    def _send_away(self, guest: Guest) -> None:
        self._leave(guest)
        guest.sock.close()

    def _leave(self, guest: Guest) -> None:
        self._selector.unregister(guest.sock)
        del self._guests[guest]
        of_host = self._of_host[guest.peer.host]
        del of_host[guest]
        if not of_host:
            del self._of_host[guest.peer.host]


def _most_waiting() -> int:
    """The size of the lobby, by the limit of open files, which may be changed from outside."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return MOST_WAITING
    return max(1, min(MOST_WAITING, int(DESCRIPTORS_SHARE * limit)))


def _has_begun(guest: Guest) -> bool | None:
    """True if the first preamble is there; None = not yet, False = the peer has hung up."""
    sock, missing = guest.sock, PREAMBLE_BYTES - len(guest.ahead)
    seen = sock.recv(missing, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    if len(seen) == missing:
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
        return True
    if sock.family != socket.AF_UNIX or not seen:
        return False
    guest.ahead += sock.recv(len(seen), socket.MSG_DONTWAIT)
    return None
