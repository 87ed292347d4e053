"""One handler behind any carrier, on a line that a test can cut.

`Station` hides which carrier is under test: sockets run through `CuttableLine`, a proxy outside the
code under test; the in-process carrier uses its own fault script.
"""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from psrt.core.clock import Clock
from psrt.rpc import pb
from psrt.rpc.access import Identity, assume
from psrt.rpc.client import Client
from psrt.rpc.dialing import Carrier, Connection, dialer
from psrt.rpc.methods import Method
from psrt.rpc.retry import RetryPolicy
from psrt.rpc.server import Server
from psrt.rpc.serving import Handler, Later, Peer
from psrt.rpc.wire.frames import Message
from tests.support.certificates import cluster_files
from tests.support.inproc import Fault, InprocServer
from tests.support.logs import tails

CARRIERS = ("stream-tcp", "stream-unix", "stream-shared", "grpc", "inproc")
ENCRYPTED = ("stream-tls", "grpc-tls")
SHARED_BYTES = 16 << 20
AT_ONCE = RetryPolicy(initial_s=0.001, max_s=0.01)
INCARNATION = 77


class CuttableLine:
    """Forwards every connection to `upstream`.

    `cut` breaks those that are open, not later ones. After `silence` no byte passes any more, and
    neither end learns of it: the links are half-open.
    """

    def __init__(self, listener: socket.socket, upstream: str | tuple[str, int]) -> None:
        self._listener, self._upstream = listener, upstream
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self._silent = threading.Event()
        self._carrying: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def cut(self) -> None:
        with self._lock:
            ends, self._open = self._open, []
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def silence(self) -> None:
        self._silent.set()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join(5.0)
        self._listener.close()
        self.cut()
        for carrying in self._carrying:
            carrying.join(5.0)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            carrying = threading.Thread(target=self._carry, args=(near,), daemon=True)
            carrying.start()
            self._carrying.append(carrying)

    def _carry(self, near: socket.socket) -> None:
        with near, socket.socket(near.family, socket.SOCK_STREAM) as far:
            try:
                far.connect(self._upstream)
            except OSError:
                return
            with self._lock:
                self._open += [near, far]
            pump = _pump_descriptors if near.family == socket.AF_UNIX else self._pump
            back = threading.Thread(target=pump, args=(far, near), daemon=True)
            back.start()
            pump(near, far)
            back.join()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if not self._silent.is_set():
                    sink.sendall(data)
        _shut(source, sink)


def _pump_descriptors(source: socket.socket, sink: socket.socket) -> None:
    """Pump until an end closes, and pass ancillary data on with its bytes."""
    with contextlib.suppress(OSError):
        while True:
            data, fds, *_ = socket.recv_fds(source, 1 << 16, 4)
            if not data:
                break
            sent = socket.send_fds(sink, [data], fds) if fds else 0
            for fd in fds:
                os.close(fd)
            sink.sendall(data[sent:])
    _shut(source, sink)


def _shut(*ends: socket.socket) -> None:
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


class Station:
    """A started server of one carrier; `client` reaches it, `lose_next_reply` stages the fault.

    `greets` says that the handler answers HELLO too, as a pserver does.
    """

    def __init__(self, carrier: str, handler: Handler, *, greets: bool = False) -> None:
        self.carrier = carrier
        self._handler = handler
        self._greets = greets
        self._lost: list[Method] = []
        self._clients: list[Client] = []
        self._lines: list[CuttableLine] = []
        self._directory = tempfile.TemporaryDirectory(prefix="psrt-test-")
        self._inproc = InprocServer(self._answer)
        self._shared_bytes = SHARED_BYTES if carrier == "stream-shared" else 0
        tls = cluster_files() if carrier in ENCRYPTED else None
        assume(Identity(tls=tls))
        self._server = Server(
            self._answer, unix_dir=str(self._unix_dir), shared_bytes=self._shared_bytes, tls=tls
        )
        self._endpoint = "inproc"
        self._tcp_data_line = self._unix_line = ""
        if carrier != "inproc":
            self._open_lines()

    def client(
        self,
        *,
        retry: RetryPolicy = AT_ONCE,
        trainer: int = 0,
        clock: Clock | None = None,
        hello: pb.Hello | None = None,
    ) -> Client:
        hello = hello or pb.Hello()
        client = Client(
            self._endpoint, trainer, INCARNATION, self._kind, hello, retry=retry, clock=clock
        )
        self._clients.append(client)
        return client

    def connection(self) -> Connection:
        """A bare connection, for requests no `Client` would send; the test closes it."""
        hello_reply = self.client().connect(5.0)
        return dialer(self._kind, self._endpoint)(hello_reply, 5.0)

    def lose_next_reply(self, method: Method) -> None:
        """The next call of `method` is carried out, then the connection breaks."""
        self._lost.append(method)
        self._inproc.faults.script(Fault.RESET_AFTER, method)

    def duplicate_next(self, method: Method) -> None:
        """The next call of `method` arrives twice; only the carrier inproc can stage that."""
        assert self.carrier == "inproc"
        self._inproc.faults.script(Fault.DUPLICATE, method)

    def cut(self) -> None:
        """Break every connection that is open; only sockets have one."""
        assert self._lines
        for line in self._lines:
            line.cut()

    def stop(self, grace_s: float = 1.0) -> None:
        self._inproc.stop()
        if self.carrier != "inproc":
            self._server.stop(grace_s)

    def close(self) -> None:
        for client in self._clients:
            client.close()
        self.stop(0.0)
        for line in self._lines:
            line.close()
        self._directory.cleanup()
        assume(Identity())

    @property
    def _kind(self) -> Carrier:
        kinds: dict[str, Carrier] = {"grpc": "grpc", "grpc-tls": "grpc", "inproc": self._inproc}
        return kinds.get(self.carrier, "stream")

    @property
    def _unix_dir(self) -> Path:
        return Path(self._directory.name) / "unix"

    def _open_lines(self) -> None:
        self._server.start()
        self._endpoint = self._tcp_line(self._server.endpoint)
        self._tcp_data_line = self._tcp_line(self._server.data_endpoints[0])
        self._unix_line = str(self._unix_dir / "line.sock")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self._unix_line)
        listener.listen()
        self._lines.append(CuttableLine(listener, self._server.unix_path))

    def _tcp_line(self, upstream: str) -> str:
        host, _, port = upstream.rpartition(":")
        listener = socket.create_server(("127.0.0.1", 0))
        self._lines.append(CuttableLine(listener, (host, int(port))))
        return f"127.0.0.1:{listener.getsockname()[1]}"

    def _answer(self, request: Message, peer: Peer) -> Message | Later:
        method = request.header.method
        if method == Method.HELLO:
            return self._hello(request, peer)
        is_lost = method in self._lost
        if is_lost:
            self._lost.remove(Method(method))
        reply = self._handler(request, peer)
        if not is_lost:
            return reply
        if isinstance(reply, Later):
            return Later(reply.future, lambda: self._cut_off(reply.finish()))
        return self._cut_off(reply)

    def _cut_off(self, reply: Message | Later) -> Message | Later:
        for line in self._lines:
            line.cut()
        return reply

    def _hello(self, request: Message, peer: Peer) -> Message:
        reply = Message(pb.Header())
        if self._greets:
            answer = self._handler(request, peer)
            assert isinstance(answer, Message)
            reply = answer
        hello = reply.header.hello_reply
        hello.data_endpoints.append(self._tcp_data_line)
        hello.unix_path, hello.shared_bytes = self._unix_line, self._shared_bytes
        if self.carrier in ("stream-tcp", "stream-tls"):
            hello.host_id = "somewhere else"
        return reply


@contextlib.contextmanager
def station(carrier: str, handler: Handler, *, greets: bool = False) -> Iterator[Station]:
    built = Station(carrier, handler, greets=greets)
    try:
        yield built
    finally:
        built.close()


def eventually(
    condition: Callable[[], bool], what: str, deadline_s: float = 60.0, logs: Sequence[Path] = ()
) -> None:
    """Poll until `condition` holds; fail with `what` it waited for, and the last lines of `logs`.

    For facts of other processes and threads that give no signal here, such as their files. The
    interval is small and the deadline generous, so a slow machine fails no test.
    """
    deadline = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < deadline, f"waited {deadline_s} s for {what}{tails(*logs)}"
        time.sleep(0.005)
