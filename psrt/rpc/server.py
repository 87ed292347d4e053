"""The server of one pserver: gRPC, stream TCP ports and stream Unix socket.

`start` opens them, `stop` closes them in order: health returns NOT_SERVING, new calls are refused,
running ones finish within the grace. `Server` adds data endpoints, Unix path and host id to every
reply to HELLO, so handlers do not depend on carriers.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from psrt.core.errors import AccessError, UnavailableError
from psrt.core.threads import CrashReport
from psrt.rpc import pb
from psrt.rpc.access import Gate
from psrt.rpc.busy_poll import NEVER, BusyPoll
from psrt.rpc.grpc_ import GrpcServer
from psrt.rpc.host_shares import HOST_SHARE
from psrt.rpc.hosts import (
    UNIX_DIR_OFF,
    UnixSocketPath,
    check_loopback,
    host_id,
    join_endpoint,
    split_endpoint,
)
from psrt.rpc.methods import Method
from psrt.rpc.serving import Handler, Later, Peer
from psrt.rpc.stream import MOST_CONNECTIONS, StreamServer
from psrt.rpc.tls import TlsFiles
from psrt.rpc.unfinished import UNFINISHED_BYTES, UnfinishedFrames
from psrt.rpc.wire import MAX_FRAME_BYTES, Message

audit = logging.getLogger("psrt.audit")


class Server:
    """A server, started once and stopped once; its endpoints are valid from `start` on.

    `port` 0 picks a free port, as do the `ports_num` stream ports. `unix_dir` is the directory of
    the Unix socket: "" means a private temporary one, "off" or None means no Unix socket. Over the
    Unix socket, payloads of up to `shared_bytes` are in shared memory. One host may use
    `host_share` of the connections and of the bytes under way. Each request carries the size limit
    of its reply (`Message.reply_limit`). The `gate` admits callers, by default all;
    `job_id` returns the job that is served, "" = none. TCP connections are encrypted by `tls`;
    without it the host must be of loopback, unless `insecure`: raises `ConfigError`. `meter` wraps
    the handler of all calls, also of those that the gate refuses; `on_refused` gets the errors of
    these.
    """

    def __init__(
        self,
        handler: Handler,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        ports_num: int = 1,
        unix_dir: str | None = None,
        unix_group: str = "",
        max_message_bytes: int = MAX_FRAME_BYTES,
        max_connections: int = MOST_CONNECTIONS,
        shared_bytes: int = 0,
        unfinished_bytes: int = UNFINISHED_BYTES,
        host_share: float = HOST_SHARE,
        crashes: CrashReport | None = None,
        busy_poll: BusyPoll = NEVER,
        gate: Gate | None = None,
        tls: TlsFiles | None = None,
        insecure: bool = False,
        job_id: Callable[[], str] = lambda: "",
        meter: Callable[[Handler], Handler] = lambda handler: handler,
        on_refused: Callable[[AccessError], None] = lambda error: None,
    ) -> None:
        self._gate, self._job_id, self._on_refused = gate or Gate(None), job_id, on_refused
        host = host.strip("[]")
        if tls is None and not insecure:
            check_loopback(host)
        self.endpoint = join_endpoint(host, port)
        self.data_endpoints: list[str] = []
        self.unix_path = ""
        self._handler = handler
        self._max_bytes, self._host = max_message_bytes, host
        self._ports_num = ports_num
        self._unix_dir = UNIX_DIR_OFF if unix_dir is None else unix_dir
        self._unix_group = unix_group
        self._shared_bytes = min(shared_bytes, max_message_bytes)
        self._host_id = host_id()
        self._unix: UnixSocketPath | None = None
        self._stop_once = threading.Lock()
        answer = meter(self._answer)
        unfinished = UnfinishedFrames(unfinished_bytes, host_share)
        self._grpc = GrpcServer(
            answer, max_message_bytes, self._gate.grant_of, tls, unfinished, host_share
        )
        self._stream = StreamServer(
            *(answer, max_message_bytes, crashes, busy_poll, max_connections, self._shared_bytes),
            tls=tls,
            unfinished=unfinished,
            host_share=host_share,
        )

    def start(self) -> None:
        """Open all listeners; health stays NOT_SERVING until `set_serving`.

        The stream ports open first, because replies to HELLO over gRPC name them.
        """
        try:
            self._open_streams()
            bound = self._grpc.start(self.endpoint)
            self.endpoint = join_endpoint(self._host, bound)
            self._open_unix_socket()
        except BaseException:
            self.stop(0.0)
            raise

    def set_serving(self, serving: bool) -> None:
        self._grpc.set_serving(serving)

    def check(self) -> None:
        """Raise an error unless the loop of gRPC works."""
        self._grpc.check()

    def stop(self, grace_s: float) -> None:
        """Finish accepted calls for `grace_s`, then cut them off; closes all listeners."""
        if not self._stop_once.acquire(blocking=False):
            return
        deadline = time.monotonic() + grace_s
        self._grpc.set_serving(False)
        self._stream.stop(grace_s)
        self._grpc.stop(max(0.0, deadline - time.monotonic()))
        if self._unix is not None:
            self._unix.remove()

    def _open_streams(self) -> None:
        try:
            ports = [self._stream.listen_tcp(self._host, 0) for _ in range(self._ports_num)]
        except OSError as error:
            raise UnavailableError(
                f"Cannot listen for data on {self._host}: {error}.",
                hint="Give an address of this host, such as 127.0.0.1, or 0.0.0.0 for all.",
            ) from error
        self.data_endpoints = [join_endpoint(self._host, port) for port in ports]

    def _open_unix_socket(self) -> None:
        if self._unix_dir == UNIX_DIR_OFF:
            return
        name = f"psrt-{split_endpoint(self.endpoint)[1]}.sock"
        self._unix = UnixSocketPath(self._unix_dir, name, self._unix_group)
        try:
            # The gRPC port in its name is ours, so an existing file belongs to a dead pserver.
            self._unix.clear()
            self._stream.listen_unix(self._unix.path, self._unix.group)
            self._unix.admit_group()
        except OSError as error:
            raise UnavailableError(
                f"Cannot listen for data on {self._unix.path}: {error}.",
                hint=f"Choose another unix_dir, or {UNIX_DIR_OFF!r} to use TCP only.",
            ) from error
        self.unix_path = self._unix.path

    def _answer(self, request: Message, peer: Peer) -> Message | Later:
        request.reply_limit = self._max_bytes
        if request.header.method == Method.OPEN:
            return self._admit(request, peer)
        try:
            self._gate.check(peer.grant, request.header, self._job_id, time.time())
        except AccessError as error:
            raise self._recorded(error, peer) from None
        reply = self._handler(request, peer)
        if request.header.method == Method.HELLO and isinstance(reply, Message):
            self._introduce(reply)
        return reply

    def _admit(self, request: Message, peer: Peer) -> Message:
        """Answer OPEN."""
        try:
            access, peer.grant = self._gate.answer(request.header.access, time.time())
        except AccessError as error:
            raise self._recorded(error, peer) from None
        return Message(pb.Header(access=access))

    def _recorded(self, error: AccessError, peer: Peer) -> AccessError:
        audit.warning("refused %s: %s", peer, error.message)
        self._on_refused(error)
        return error

    def _introduce(self, reply: Message) -> None:
        """Add the endpoints to a reply to HELLO, except where a handler set others (a proxy's)."""
        hello = reply.header.hello_reply
        if not hello.data_endpoints:
            hello.data_endpoints.extend(self.data_endpoints)
        if not hello.unix_path:
            hello.unix_path, hello.shared_bytes = self.unix_path, self._shared_bytes
        hello.host_id = hello.host_id or self._host_id
