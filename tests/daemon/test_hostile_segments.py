"""Descriptors that a hostile client passes as shared memory: none of them can kill a pserver.

A pserver that read memory which its sender has truncated would get SIGBUS and end. The client here
speaks bytes of its own, the pserver is a process of its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import tempfile
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from psrt.core.errors import ErrorCode
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.shm.segments import Segment
from psrt.rpc.wire import Message, decode, encode_apart
from psrt.rpc.wire.preamble import PREAMBLE_BYTES, parse_preamble, preamble
from tests.support.pserver import DaemonProcess, daemon, onlooker, status
from tests.support.raw_stream import WAIT_S, everything, frame

MIB = 1 << 20
APART = 1 | 2 | 4  # SHARES | APART | NEW
ALL = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
REFUSALS = (ErrorCode.WIRE_GARBAGE, ErrorCode.WIRE_TOO_LARGE, ErrorCode.SEGMENT_REFUSED)


@pytest.fixture(scope="module")
def pserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    with daemon(tmp_path_factory.mktemp("pserver")) as running:
        yield running


def memory(size_bytes: int, seals: int = ALL, flags: int = 0) -> int:
    fd = os.memfd_create("hostile", os.MFD_ALLOW_SEALING | flags)
    os.ftruncate(fd, size_bytes)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def regular_file() -> int:
    with tempfile.TemporaryFile() as file:
        file.truncate(MIB)
        return os.dup(file.fileno())


def pipe() -> int:
    reading, writing = os.pipe()
    os.close(writing)
    return reading


DESCRIPTORS: dict[str, Callable[[], int]] = {
    "nothing sealed": lambda: memory(MIB, 0),
    "may shrink": lambda: memory(MIB, ALL & ~fcntl.F_SEAL_SHRINK),
    "may grow": lambda: memory(MIB, ALL & ~fcntl.F_SEAL_GROW),
    "seals not final": lambda: memory(MIB, ALL & ~fcntl.F_SEAL_SEAL),
    "too small": lambda: memory(4096),
    "empty": lambda: memory(0),
    "huge": lambda: memory(1 << 42),
    "a directory": lambda: os.open("/", os.O_RDONLY),
    "a pipe": pipe,
    "a device": lambda: os.open("/dev/zero", os.O_RDWR),
    "a file": regular_file,
    "a socket": lambda: socket.socket().detach(),
}


def exchanged(pserver: DaemonProcess, fd: int, after: Callable[[], None]) -> pb.Error:
    """The error in reply to a call whose 64 KiB of ids are in `fd`; `after` runs once it is sent.

    The pserver copies ids before it checks them, so it reads all of the memory.
    """
    path = str(pserver.facts["unix_path"])
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(WAIT_S)
        sock.connect(path)
        sock.sendall(frame(Method.OPEN))
        assert not reply(sock).HasField("error")
        message = Message(pb.Header(protocol=1, method=Method.PULL), [np.zeros(1 << 13, np.int64)])
        head = encode_apart(message, (0,), 1 << 16)
        socket.send_fds(sock, [preamble(len(head), flags=APART) + head], [fd])
        after()
        return reply(sock).error


def reply(sock: socket.socket) -> pb.Header:
    head = sock.recv(PREAMBLE_BYTES, socket.MSG_WAITALL)
    return decode(sock.recv(parse_preamble(head).size_bytes, socket.MSG_WAITALL)).header


def check_alive(pserver: DaemonProcess) -> None:
    assert pserver.process.poll() is None, pserver.log.read_text()
    client = onlooker(pserver.endpoint)
    assert "tables" in status(client)
    client.close()


@pytest.mark.parametrize("kind", DESCRIPTORS)
def test_memory_that_could_fail_under_the_pserver_is_refused(
    pserver: DaemonProcess, kind: str
) -> None:
    fd = DESCRIPTORS[kind]()
    before = len(os.listdir(f"/proc/{pserver.process.pid}/fd"))

    def shrink() -> None:
        with contextlib.suppress(OSError):
            os.ftruncate(fd, 0)

    error = exchanged(pserver, fd, shrink)
    os.close(fd)

    assert error.code in REFUSALS, error
    check_alive(pserver)
    assert len(os.listdir(f"/proc/{pserver.process.pid}/fd")) <= before + 1


def test_descriptors_behind_a_refused_frame_do_not_end_the_pserver(pserver: DaemonProcess) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(WAIT_S)
        sock.connect(str(pserver.facts["unix_path"]))
        sock.sendall(b"not a frame at all")
        fds = [memory(4096) for _ in range(4)]
        with contextlib.suppress(OSError):  # refused already
            for _ in range(3):
                socket.send_fds(sock, [b"x"], fds)
            sock.shutdown(socket.SHUT_WR)
            everything(sock)

    check_alive(pserver)
    for fd in fds:
        os.close(fd)


def test_memory_of_huge_pages_is_refused(pserver: DaemonProcess) -> None:
    try:
        fd = memory(2 * MIB, flags=os.MFD_HUGETLB)
    except OSError as error:
        pytest.skip(f"this kernel has no memory of huge pages: {error}")

    error = exchanged(pserver, fd, lambda: None)
    os.close(fd)

    assert "another kind" in error.message
    check_alive(pserver)


def test_sealed_memory_keeps_its_size_while_the_pserver_reads_it(pserver: DaemonProcess) -> None:
    fd = memory(MIB)

    def attack() -> None:
        for size_bytes in (0, 4096, 4 * MIB):
            with pytest.raises(PermissionError):
                os.ftruncate(fd, size_bytes)

    error = exchanged(pserver, fd, attack)
    os.close(fd)

    assert "more tensors than its 0 parts use" in error.message  # it was mapped and read
    check_alive(pserver)


def test_a_client_cannot_write_the_memory_of_a_pserver() -> None:
    segment = Segment(MIB)
    assert segment.fd is not None
    if not fcntl.fcntl(segment.fd, fcntl.F_GET_SEALS) & 0x10:
        pytest.skip("this kernel has no seal against writing")

    with pytest.raises(PermissionError):
        os.write(segment.fd, b"x")
    with pytest.raises(PermissionError):
        os.ftruncate(segment.fd, 0)

    segment.memory[0] = 7
    segment.close_fd()
