"""Children of a process whose other threads call by gRPC: its fork handlers must not end them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from psrt.launch.processes import die_with_parent
from psrt.rpc import pb
from psrt.rpc.grpc_ import GrpcConnection, GrpcServer
from psrt.rpc.methods import Method
from psrt.rpc.wire.frames import Message
from tests.support.processes import DEADLINE_S

CALLERS = 3
CHILDREN = 120  # with its fork handlers 1 of 40 was lost


@contextmanager
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
    try:
        yield
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
        server.stop(1.0)


def ends_of_children() -> set[tuple[int, bytes]]:
    """Exit codes and errors of children that start while others call."""
    with callers():
        ended = [
            subprocess.run(
                ["true"], capture_output=True, check=False, preexec_fn=die_with_parent, timeout=60
            )
            for _ in range(CHILDREN)
        ]
    return {(child.returncode, child.stderr) for child in ended}


def test_children_start_while_other_threads_call_by_grpc(tmp_path: Path) -> None:
    # In a process of its own: a fork of one that has run many tests copies all their memory.
    log = tmp_path / "log"
    with log.open("w") as output:
        small = subprocess.Popen(
            [sys.executable, __file__], stdout=output, stderr=output, start_new_session=True
        )
    try:
        small.wait(DEADLINE_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(small.pid, signal.SIGKILL)  # also a child that a handler has stopped
        small.wait()

    assert log.read_text() == str({(0, b"")}) + "\n"


if __name__ == "__main__":
    print(ends_of_children())
