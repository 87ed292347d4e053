"""Children of a process whose other threads call by gRPC: its fork handlers must not end them."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator

import pytest

from psrt.launch.processes import die_with_parent
from psrt.rpc import pb
from psrt.rpc.grpc_ import GrpcConnection, GrpcServer
from psrt.rpc.methods import Method
from psrt.rpc.wire.frames import Message

CALLERS = 3
CHILDREN = 120  # with its fork handlers 1 of 40 was lost


@pytest.fixture
def callers() -> Iterator[None]:
    """Threads that open channels, call and close them all the time."""
    server = GrpcServer(lambda request, peer: Message(pb.Header(), []))
    endpoint = f"127.0.0.1:{server.start('127.0.0.1:0')}"
    stopped = threading.Event()

    def call() -> None:
        while not stopped.is_set():
            connection = GrpcConnection(endpoint)
            connection.call(Message(pb.Header(protocol=1, method=Method.PULL), []), 30.0)
            connection.close()

    threads = [threading.Thread(target=call) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    yield
    stopped.set()
    for thread in threads:
        thread.join()
    server.stop(1.0)


@pytest.mark.usefixtures("callers")
def test_children_start_while_other_threads_call_by_grpc() -> None:
    ended = [
        subprocess.run(
            ["true"], capture_output=True, check=False, preexec_fn=die_with_parent, timeout=60
        )
        for _ in range(CHILDREN)
    ]

    assert {(child.returncode, child.stderr) for child in ended} == {(0, b"")}
