"""Detection of the end of a trainer's process over each carrier."""

from __future__ import annotations

import contextlib
import gc
import socket
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from psrt.core.errors import ErrorCode, UnavailableError, WireError
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.dialing import Carrier
from psrt.rpc.grpc_ import grpc_carrier, grpc_presence, grpc_server
from psrt.rpc.grpc_.call_limits import CallLimits
from psrt.rpc.methods import Method
from psrt.rpc.server import Server
from psrt.rpc.serving import Later, Peer, begin, settle
from psrt.rpc.stream.stream import connect_tcp
from psrt.rpc.unfinished import UnfinishedFrames
from psrt.rpc.wire import Message
from tests.support.carriers import CuttableLine, eventually

CARRIERS: tuple[Carrier, ...] = ("stream", "grpc")
TIMEOUT_S = 30.0


@dataclass
class Attendance:
    """A handler that keeps the peers of ATTEND, as a pserver does."""

    peers: list[Peer] = field(default_factory=list)
    knows_attend: bool = True

    def __call__(self, message: Message, peer: Peer) -> Message:
        if message.header.method == Method.ATTEND:
            if not self.knows_attend:
                raise WireError("no such method", code=ErrorCode.WIRE_UNKNOWN_METHOD)
            if peer.lasts:
                self.peers.append(peer)
        return Message(pb.Header())

    def present(self) -> int:
        return sum(not peer.has_left for peer in self.peers)


@dataclass
class Place:
    """A server, and a line to its gRPC port that tests cut or silence."""

    server: Server
    line: CuttableLine
    attendance: Attendance
    endpoint: str

    def client(self, carrier: Carrier) -> Client:
        return Client(self.endpoint, 0, 7, carrier, pb.Hello())


@contextlib.contextmanager
def place_of(attendance: Attendance | None = None) -> Iterator[Place]:
    handler = attendance or Attendance()
    server = Server(handler, unix_dir="off")
    server.start()
    listener = socket.create_server(("127.0.0.1", 0))
    host, _, port = server.endpoint.rpartition(":")
    line = CuttableLine(listener, (host, int(port)))
    endpoint = f"127.0.0.1:{listener.getsockname()[1]}"
    try:
        yield Place(server, line, handler, endpoint)
    finally:
        server.stop(0.0)
        line.close()


@contextlib.contextmanager
def attending(place: Place, carrier: Carrier) -> Iterator[Client]:
    client = place.client(carrier)
    try:
        client.connect(TIMEOUT_S)
        client.attend(TIMEOUT_S)
        eventually(lambda: place.attendance.present() == 1, "the presence")
        yield client
    finally:
        client.close()


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_client_that_attends_is_present_until_it_closes(carrier: Carrier) -> None:
    with place_of() as place, attending(place, carrier) as client:
        client.call(Method.STATUS, timeout_s=TIMEOUT_S)
        while_open = place.attendance.present()

        client.close()

        eventually(lambda: place.attendance.present() == 0, "the end of the presence")
    assert while_open == 1


def test_over_grpc_an_unary_call_alone_shows_no_presence() -> None:
    with place_of() as place, contextlib.closing(place.client("grpc")) as client:
        client.connect(TIMEOUT_S)
        client.call(Method.ATTEND, timeout_s=TIMEOUT_S)

        assert place.attendance.peers == []


def test_a_presence_that_was_cut_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_presence, "AGAIN_S", 0.01)
    with place_of() as place, attending(place, "grpc"):
        (first,) = place.attendance.peers

        place.line.cut()

        eventually(lambda: first.has_left, "the end of the first presence", TIMEOUT_S)
        eventually(lambda: place.attendance.present() == 1, "the second presence", TIMEOUT_S)


def test_keepalive_ends_a_presence_on_a_half_open_link(monkeypatch: pytest.MonkeyPatch) -> None:
    often = [(name, 100 if name.endswith("_ms") else value) for name, value in KEEPALIVE]
    monkeypatch.setattr(grpc_server, "KEEPALIVE_OPTIONS", often)
    with place_of() as place, attending(place, "grpc"):
        (first,) = place.attendance.peers

        place.line.silence()

        eventually(lambda: first.has_left, "the end of the presence", TIMEOUT_S)


KEEPALIVE = grpc_carrier.KEEPALIVE_OPTIONS


def test_a_server_that_stops_waits_for_no_presence() -> None:
    with place_of() as place, attending(place, "grpc"):
        stopping = threading.Thread(target=place.server.stop, args=(10 * TIMEOUT_S,))
        stopping.start()
        stopping.join(TIMEOUT_S)

        assert not stopping.is_alive()
        assert place.attendance.present() == 0


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_pserver_that_knows_no_attend_is_used_without_presence(carrier: Carrier) -> None:
    with place_of(Attendance(knows_attend=False)) as place:
        with contextlib.closing(place.client(carrier)) as client:
            client.connect(TIMEOUT_S)
            client.attend(TIMEOUT_S)
            client.call(Method.STATUS, timeout_s=TIMEOUT_S)

        assert place.attendance.peers == []


def test_a_server_refuses_more_presences_than_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    def limited(max_bytes: int, frames: UnfinishedFrames, share: float) -> CallLimits:
        return CallLimits(max_bytes, frames, 1.0, most_calls=1)

    monkeypatch.setattr(grpc_server, "CallLimits", limited)
    monkeypatch.setattr(grpc_presence, "AGAIN_S", 0.01)
    with place_of() as place, attending(place, "grpc"):
        other = place.client("grpc")
        with contextlib.closing(other):
            other.connect(TIMEOUT_S)
            other.attend(TIMEOUT_S)
            for _ in range(3):
                other.call(Method.STATUS, timeout_s=TIMEOUT_S)

            assert len(place.attendance.peers) == 1


def test_tcp_ends_half_open_links_with_and_without_data_under_way() -> None:
    with place_of() as place:
        connection = connect_tcp(place.server.data_endpoints[0], TIMEOUT_S)
        sock = connection._frames._sock
        idle_s, pause_s, probes = (
            sock.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        )
        unanswered_ms = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
        connection.close()

    assert sock.fileno() == -1
    assert idle_s + pause_s * probes == 90
    assert unanswered_ms == 90_000


def test_the_error_of_a_wait_does_not_keep_the_connection_of_its_caller() -> None:
    wait, peer = Later(future_with(UnavailableError("no")), lambda: Message(pb.Header())), None
    request = Message(pb.Header(protocol=1, method=Method.STATUS))
    gc.disable()
    try:
        peer = Peer("stream-tcp", "127.0.0.1:1")
        reference = weakref.ref(peer)

        begin(lambda message, peer: wait, request, peer)
        settle(wait, request.header, peer)
        del peer

        assert reference() is None
    finally:
        gc.enable()


def future_with(error: Exception):  # type: ignore[no-untyped-def]
    from concurrent.futures import Future

    future: Future[None] = Future()
    future.set_exception(error)
    return future
