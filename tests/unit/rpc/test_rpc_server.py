"""A pserver's doors: where they are, who may enter, what health says, how they shut."""

from __future__ import annotations

import os
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import grpc
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

from psrt.core.errors import ConfigError, ErrorCode, UnavailableError
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.server import Server
from psrt.rpc.serving import Later, Peer
from psrt.rpc.stream.stream import connect_tcp, connect_unix
from psrt.rpc.wire.frames import Message
from tests.support.carriers import eventually

WAIT_S = 10.0
HELLO = Message(pb.Header(protocol=1, method=Method.HELLO))
STATES = health_pb2.HealthCheckResponse


def empty(request: Message, peer: Peer) -> Message:
    return Message(pb.Header())


Start = Callable[..., Server]


@pytest.fixture
def start() -> Iterator[Start]:
    servers: list[Server] = []

    def build(handler: object = empty, **options: object) -> Server:
        servers.append(Server(handler, **options))  # type: ignore[arg-type]
        servers[-1].start()
        return servers[-1]

    yield build
    for server in servers:
        server.stop(0.0)


def hello(server: Server) -> pb.HelloReply:
    connection = connect_tcp(server.data_endpoints[0], WAIT_S)
    reply = connection.call(HELLO, WAIT_S)
    connection.close()
    return reply.header.hello_reply


def test_hello_tells_the_data_ports_the_unix_path_and_the_host(start: Start) -> None:
    server = start(ports_num=3, unix_dir="")

    reply = hello(server)

    assert list(reply.data_endpoints) == server.data_endpoints
    assert len(set(server.data_endpoints)) == 3
    assert reply.unix_path == server.unix_path
    assert socket.gethostname() in reply.host_id


def test_endpoints_a_handler_advertises_itself_are_left_alone(start: Start) -> None:
    advertised = pb.HelloReply(data_endpoints=["proxy:1"], unix_path="/run/x", host_id="h")
    server = start(lambda request, peer: Message(pb.Header(hello_reply=advertised)))

    assert hello(server) == advertised


def test_unix_socket_lies_in_a_private_directory_and_goes_with_the_server(start: Start) -> None:
    server = start(unix_dir="")
    path = Path(server.unix_path)
    mode = stat.S_IMODE(path.parent.stat().st_mode)
    connection = connect_unix(server.unix_path, WAIT_S)
    reply = connection.call(HELLO, WAIT_S)
    connection.close()

    server.stop(0.0)

    assert mode == 0o700
    assert not reply.header.HasField("error")
    assert not path.parent.exists()


def test_given_unix_directory_is_made_private_and_only_the_socket_is_removed(
    start: Start, tmp_path: Path
) -> None:
    directory = tmp_path / "sockets"
    server = start(unix_dir=str(directory))
    mode = stat.S_IMODE(directory.stat().st_mode)

    server.stop(0.0)

    assert mode == 0o700
    assert os.listdir(directory) == []


def test_unix_directory_that_others_may_write_to_is_refused(start: Start, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)

    with pytest.raises(ConfigError, match="writable by others"):
        start(unix_dir=str(tmp_path))


def test_unix_path_too_long_for_the_kernel_is_refused_with_a_hint(
    start: Start, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="longer than 107 bytes") as caught:
        start(unix_dir=str(tmp_path / ("x" * 100)))

    assert "'off'" in caught.value.hint


def test_socket_left_by_a_killed_pserver_does_not_stop_the_next_one(
    start: Start, tmp_path: Path
) -> None:
    tmp_path.chmod(0o700)
    killed = start(unix_dir=str(tmp_path))
    killed.stop(0.0)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(killed.unix_path)

    server = start(port=int(killed.endpoint.rpartition(":")[2]), unix_dir=str(tmp_path))
    connection = connect_unix(killed.unix_path, WAIT_S)
    reply = connection.call(HELLO, WAIT_S)
    connection.close()

    assert reply.header.hello_reply.unix_path == server.unix_path == killed.unix_path


def test_port_in_use_is_a_startup_error_that_names_it(start: Start) -> None:
    port = int(start().endpoint.rpartition(":")[2])

    with pytest.raises(UnavailableError, match=f"127.0.0.1:{port}") as caught:
        start(port=port)

    assert caught.value.code == ErrorCode.STARTUP_FAILED


def test_health_says_serving_only_when_told_and_watchers_see_the_end(start: Start) -> None:
    server = start()
    with grpc.insecure_channel(server.endpoint) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        watch = health.Watch(health_pb2.HealthCheckRequest(service="psrt.v1.Pserver"))
        seen = [next(watch).status]
        server.set_serving(True)
        seen.append(next(watch).status)
        checked = health.Check(health_pb2.HealthCheckRequest(), timeout=WAIT_S).status
        server.stop(WAIT_S)
        seen.append(next(watch).status)

    assert seen == [STATES.NOT_SERVING, STATES.SERVING, STATES.NOT_SERVING]
    assert checked == STATES.SERVING


def test_stop_cuts_off_calls_that_outlive_the_grace_and_leaves_no_thread(start: Start) -> None:
    never: Future[None] = Future()
    began = threading.Event()

    def wait_for_ever(request: Message, peer: Peer) -> Later:
        began.set()
        return Later(never, lambda: Message(pb.Header()))

    server = start(wait_for_ever)
    connection = connect_tcp(server.data_endpoints[0], WAIT_S)
    failures: list[BaseException] = []
    caller = threading.Thread(target=lambda: failures.append(failure_of(connection)))
    caller.start()
    assert began.wait(WAIT_S)

    server.stop(0.05)
    caller.join(WAIT_S)
    never.set_result(None)

    connection.close()
    assert isinstance(failures[0], UnavailableError)
    eventually(lambda: stream_threads() == [], "the stream threads to end")


def failure_of(connection: object) -> BaseException:
    with pytest.raises(UnavailableError) as caught:
        connection.call(Message(pb.Header(protocol=1, method=3)), WAIT_S)  # type: ignore[attr-defined]
    return caught.value


def stream_threads() -> list[str]:
    prefixes = ("psrt-stream", "psrt-accept")
    return [t.name for t in threading.enumerate() if t.name.startswith(prefixes)]


def test_stopped_server_leaves_no_thread_of_its_own(start: Start) -> None:
    server = start(unix_dir="", ports_num=2)
    hello(server)

    server.stop(1.0)
    server.stop(1.0)

    eventually(
        lambda: not [t for t in threading.enumerate() if t.name.startswith("psrt-")],
        "the threads of the server to end",
    )


def test_two_servers_live_in_one_process(start: Start) -> None:
    first, second = start(), start()
    first.stop(0.0)

    third = start()

    assert len({first.endpoint, second.endpoint}) == 2
    assert list(hello(second).data_endpoints) == second.data_endpoints
    assert list(hello(third).data_endpoints) == third.data_endpoints


def test_tools_can_list_the_services_and_their_calls() -> None:
    server = Server(lambda request, peer: Message(pb.Header()))
    server.start()
    try:
        with grpc.insecure_channel(server.endpoint) as channel:
            found = ProtoReflectionDescriptorDatabase(channel)
            pool = DescriptorPool(found)
            names = set(found.get_services())
            calls = pool.FindServiceByName("psrt.v1.Pserver").methods_by_name
    finally:
        server.stop(0.0)

    assert {"psrt.v1.Pserver", "grpc.health.v1.Health"} <= names
    assert list(calls) == ["Call", "CallLarge", "Attend"]
