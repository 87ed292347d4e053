"""The stream carrier, server side: a thread for all listeners, a thread per connection.

A connection thread receives a frame, runs the handler, waits for a `Later` if it gets one, and
sends the reply: no queue, no hand-over between threads. Measured on 2 cores with 13,312 rows of 16
floats a call, this moves 9.3–9.7 M rows/s; an event loop with a kernel pool moves 6.6–8.6. An idle
connection costs a thread that sleeps in the kernel. A connection over the limit gets an error reply
and is closed.

A connection is a stranger's until its first call, OPEN: its frames are small, and it ends after
OPEN_S. It waits in the lobby, without a thread, until it begins to call. When there are too many
strangers, or connections, the oldest stranger of the host that has most of them makes room.

`stop` closes the listeners and the reading side of every connection, so accepted calls finish and
their replies are sent; after the grace the rest is cut off.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

from psrt.core.errors import AccessError, PsrtError, UnavailableError, WireError
from psrt.core.failpoints import reach
from psrt.core.threads import CrashReport, start_thread
from psrt.rpc import pb
from psrt.rpc.busy_poll import NEVER, BusyPoll
from psrt.rpc.host_shares import HOST_SHARE
from psrt.rpc.hosts import listen
from psrt.rpc.serving import Handler, Later, Peer, begin, error_reply, settle
from psrt.rpc.shm import SegmentRefusedError, SharedMemory
from psrt.rpc.stream.lobby import Guest, Lobby
from psrt.rpc.stream.sockets import FrameSocket
from psrt.rpc.stream.strangers import Strangers
from psrt.rpc.stream.unix_peers import check_unix_peer
from psrt.rpc.tls import TlsFiles, accept_encrypted
from psrt.rpc.traced_calls import span_of_request
from psrt.rpc.unfinished import UNFINISHED_BYTES, UnfinishedFrames
from psrt.rpc.wire import GREETING_BYTES, MAX_FRAME_BYTES, StrangerError, no_memory

log = logging.getLogger("psrt.rpc")
audit = logging.getLogger("psrt.audit")

MOST_CONNECTIONS = 4096
"""Limit for all listeners together: three connections of each of 1,365 trainers in mode async."""

MOST_STRANGERS = 256
"""Connections that have begun their first call."""

_BACKLOG = 1024
_ABORT_JOIN_S = 1.0


class StreamServer:
    """Listeners and connections of one pserver.

    Invariant: a live connection is in `_connections`, and its thread removes it before it ends; it
    is in `_strangers` until it is opened. `_stopping` set implies that no connection
    is added any more. `unfinished` are the frames that have not arrived as a whole; a host has at
    most `host_share` of the connections.
    """

    def __init__(
        self,
        handler: Handler,
        max_bytes: int = MAX_FRAME_BYTES,
        crashes: CrashReport | None = None,
        busy_poll: BusyPoll = NEVER,
        most_connections: int = MOST_CONNECTIONS,
        shared_bytes: int = 0,
        tls: TlsFiles | None = None,
        unfinished: UnfinishedFrames | None = None,
        host_share: float = HOST_SHARE,
    ) -> None:
        self._handler, self._tls = handler, tls
        self._max_bytes = max_bytes
        self._most_connections = most_connections
        self._busy_poll = busy_poll
        self._shared_bytes = shared_bytes
        self._unfinished = unfinished or UnfinishedFrames(UNFINISHED_BYTES)
        self._most_of_host = max(1, int(host_share * most_connections))
        self._of_host: Counter[str] = Counter()  # connections
        self._crashes = crashes or CrashReport()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._lobby = Lobby(self._meet, self._add, host_share, self._crashes)
        self._connections: dict[FrameSocket, threading.Thread] = {}
        self._strangers = Strangers()
        self._accepted = 0
        self._unix_group: int | None = None

    def listen_tcp(self, host: str, port: int) -> int:
        """Accept connections on `port` (0 picks one); returns the port."""
        listener = listen(host, port, _BACKLOG)
        bound = int(listener.getsockname()[1])
        self._lobby.open(listener, f"tcp-{bound}")
        return bound

    def listen_unix(self, path: str, group: int | None = None) -> None:
        """Accept connections on `path`, of this user, of root, and of the members of `group`."""
        self._unix_group = group
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        listener.listen(_BACKLOG)
        self._lobby.open(listener, "unix")

    def stop(self, grace_s: float) -> None:
        """Refuse new calls, let running ones finish for `grace_s`, then cut them off."""
        deadline = time.monotonic() + grace_s
        with self._lock:
            self._stopping.set()
        self._lobby.close()
        self._each_connection(FrameSocket.close_reading)
        self._join(deadline)
        self._each_connection(FrameSocket.abort)
        self._join(time.monotonic() + _ABORT_JOIN_S)
        with self._lock:
            names = [thread.name for thread in self._connections.values()]
        if names:
            log.warning("stopped while calls were running: %s", ", ".join(names))

    def _meet(self, sock: socket.socket, address: object) -> Peer:
        """The peer of a new connection; raises `AccessError` for a user who may not call."""
        if sock.family == socket.AF_UNIX:
            check_unix_peer(sock, self._unix_group)
        return _peer(sock, address)

    def _add(self, guest: Guest) -> None:
        """Serve a connection that has begun to call."""
        sock, peer = guest.sock, guest.peer
        is_unix = sock.family == socket.AF_UNIX
        shared = SharedMemory(self._shared_bytes) if is_unix and self._shared_bytes else None
        tls = None if is_unix else self._tls
        carried = sock if tls is None else accept_encrypted(sock, tls, str(peer))
        expect = partial(self._unfinished.expect, peer.host)
        frames = FrameSocket(carried, self._max_bytes, self._busy_poll, shared, expect, guest.ahead)
        frames.receive_limit = min(GREETING_BYTES, self._max_bytes)
        frames.expire_at(guest.ends_s)
        try:
            with self._lock:
                self._begin_serving(frames, peer)
        except UnavailableError as error:
            self._turn_away(frames, peer, error)

    def _begin_serving(self, frames: FrameSocket, peer: Peer) -> None:
        if self._stopping.is_set():
            frames.close()
            return
        count = len(self._connections)
        self._make_room(peer.host, count)
        self._accepted += 1
        name = f"psrt-{peer.carrier}-{self._accepted}"
        try:
            # The thread needs the lock to remove itself, so it cannot end before it is added.
            self._connections[frames] = start_thread(
                lambda: self._serve(frames, peer), name, self._crashes
            )
            self._strangers.add(frames, peer.host)
            self._of_host[peer.host] += 1
        except (RuntimeError, MemoryError) as error:
            here, no_thread = f"{count} connections", "and cannot start another thread"
            raise _full(here, no_thread, "raise its limits of threads and memory") from error

    def _make_room(self, host: str, count: int) -> None:
        """Make room for a connection of `host` behind `count` others; raises if there is none."""
        of_host = self._of_host[host]
        if of_host >= self._most_of_host:
            if not self._strangers.has_of(host):
                of = f"{of_host} connections of host {host}"
                raise _full(of, "as many as one may have", "raise max_host_share of this one")
            self._strangers.send_away(host)
        elif count >= self._most_connections and not self._strangers:
            raise _full(f"{count} connections", "as many as it may", "raise max_connections")
        elif count >= self._most_connections or len(self._strangers) >= MOST_STRANGERS:
            self._strangers.send_away()

    def _turn_away(self, frames: FrameSocket, peer: Peer, error: UnavailableError) -> None:
        """Send the error and close at once: the listener has other connections to accept."""
        log.warning("refused the connection of %s: %s", peer, error)
        with contextlib.suppress(OSError):
            frames.send(error_reply(pb.Header(), error, peer))
        frames.close()

    def _serve(self, frames: FrameSocket, peer: Peer) -> None:
        try:
            while self._answer_one(frames, peer):
                pass
        except AccessError as error:
            audit.warning("refused %s: %s", peer, error.message)
            frames.drain()
        except (WireError, UnavailableError) as error:
            self._refuse(frames, peer, error)
        except MemoryError:
            self._refuse(frames, peer, no_memory("a message"))
        except OSError as error:
            log.debug("connection of %s lost: %s", peer, error)
        except Exception:  # a defect: a peer that finds one may end its own connection, no more
            log.exception("a defect of psrt ended the connection of %s", peer)
        finally:
            peer.has_left = True
            frames.close()
            with self._lock:
                del self._connections[frames]
                self._strangers.discard(frames)
                self._of_host -= Counter([peer.host])

    def _answer_one(self, frames: FrameSocket, peer: Peer) -> bool:
        """Serve one call; returns False once the peer has closed.

        Request and reply end with this function, so their buffers are free again. The request ends
        before the reply is sent, because the reply carries the segments that are free.
        """
        try:
            request = frames.receive()
        except SegmentRefusedError as error:
            frames.send(error_reply(error.header, error, peer))
            return True
        if request is None:
            return False
        request.empty, header = frames.empty, request.header
        was_open = peer.grant is not None
        with span_of_request(header, peer):
            reply = begin(self._handler, request, peer)
            del request
            while isinstance(reply, Later):
                reply = settle(reply, header, peer)
            if peer.grant is not None and not was_open:
                self._opened(frames)
            try:
                frames.send(reply)
            except WireError as error:  # the reply is at fault: nothing of it was sent
                frames.send(error_reply(header, error, peer))
        reach("reply.sent")
        return True

    def _opened(self, frames: FrameSocket) -> None:
        """Serve the calls of a connection that was admitted."""
        frames.receive_limit = self._max_bytes
        frames.expire_at(None)
        with self._lock:
            self._strangers.discard(frames)

    def _refuse(self, frames: FrameSocket, peer: Peer, error: PsrtError) -> None:
        log.warning("closed the connection of %s: %s", peer, error.message)
        with contextlib.suppress(OSError, MemoryError):
            if not isinstance(error, StrangerError):
                frames.send(error_reply(pb.Header(), error, peer))
            frames.drain()

    def _each_connection(self, act: Callable[[FrameSocket], None]) -> None:
        with self._lock:
            connections = list(self._connections)
        for frames in connections:
            act(frames)

    def _join(self, deadline: float) -> None:
        self._lobby.join(max(0.0, deadline - time.monotonic()))
        with self._lock:
            threads = list(self._connections.values())
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))


def _full(connections: str, why: str, remedy: str) -> UnavailableError:
    return UnavailableError(
        f"This pserver has {connections}, {why}; one more was refused.",
        hint=f"Use more pservers, or {remedy}.",
    )


def _peer(sock: socket.socket, address: object) -> Peer:
    if isinstance(address, tuple):
        return Peer("stream-tcp", f"{address[0]}:{address[1]}")
    return Peer("stream-unix", sock.getsockname())
