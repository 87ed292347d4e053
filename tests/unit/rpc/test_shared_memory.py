"""Payloads in shared memory: written once, read in place, never overwritten while in use."""

from __future__ import annotations

import errno
import gc
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from psrt.core.errors import ErrorCode, WireError
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.server import Server
from psrt.rpc.serving import Peer
from psrt.rpc.shm import segments
from psrt.rpc.shm.segments import MAX_SEGMENTS, MIN_PAYLOAD_BYTES, LocalSegments, Segment, attach
from psrt.rpc.shm.shared_memory import APART, NEW, SHARES, SharedMemory
from psrt.rpc.stream.sockets import FrameSocket
from psrt.rpc.stream.stream import connect_unix
from psrt.rpc.wire.buffers import address
from psrt.rpc.wire.frames import Message, encode_apart
from psrt.rpc.wire.preamble import preamble

MIB = 1 << 20
LIMIT = 4 * MIB
WAIT_S = 10.0
ROWS = MIN_PAYLOAD_BYTES // 64
"""Of 16 numbers: the fewest rows that are put into a segment."""

pytestmark = pytest.mark.usefixtures("cheap_collections")


class Ends:
    """Both ends of a connection that shares memory, as client and pserver have them."""

    def __init__(self, agreed: bool = True, limit_bytes: int = LIMIT) -> None:
        near, far = socket.socketpair()
        self.client = FrameSocket(near, 1 << 30, shared=SharedMemory(limit_bytes, agreed=agreed))
        self.pserver = FrameSocket(far, 1 << 30, shared=SharedMemory(limit_bytes))

    def send(self, *tensors: Any) -> list[Any]:
        """Send tensors; return those that the pserver receives."""
        self.client.send(Message(pb.Header(), list(tensors)))
        return received(self.pserver)

    def reply(self, *tensors: Any) -> list[Any]:
        self.pserver.send(Message(pb.Header(), list(tensors)))
        return received(self.client)

    def close(self) -> None:
        self.client.close()
        self.pserver.close()


def echo(request: Message, peer: Peer) -> Message:
    return Message(pb.Header(), list(request.tensors))


def received(frames: FrameSocket) -> list[Any]:
    message = frames.receive()
    assert message is not None
    return message.tensors


@pytest.fixture
def ends() -> Iterator[Ends]:
    before = descriptors()
    made = Ends()
    yield made
    made.close()
    assert descriptors() == before


def descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def shared_mappings() -> list[tuple[int, int]]:
    """Addresses of the segments that this process has mapped."""
    with open("/proc/self/maps", encoding="utf-8") as lines:
        spans = [line.split()[0].split("-") for line in lines if "memfd:psrt" in line]
    return [(int(start, 16), int(end, 16)) for start, end in spans]


def is_shared(array: Any) -> bool:
    return any(start <= address(array) < end for start, end in shared_mappings())


def rows(value: float, count: int = ROWS) -> Any:
    return np.full((count, 16), value, np.float32)


# --- messages ---------------------------------------------------------------------------------


def test_a_large_payload_is_read_where_it_was_written(ends: Ends) -> None:
    (got,) = ends.send(rows(1.5))

    assert is_shared(got)
    assert not got.flags.writeable
    assert (got == 1.5).all()


@pytest.mark.parametrize("count", [ROWS - 1, 2 * ROWS + 1], ids=["small", "over the limit"])
def test_other_payloads_travel(count: int) -> None:
    ends, payload = Ends(limit_bytes=2 * MIN_PAYLOAD_BYTES), rows(1.0, count)

    (got,) = ends.send(payload)

    assert not is_shared(got)
    assert np.array_equal(got, payload)
    ends.close()


def test_whole_numbers_are_copied_before_they_are_looked_at(ends: Ends) -> None:
    ids, flags = np.arange(5), np.arange(9, dtype=np.uint8)

    got = ends.send(ids, rows(1.0), flags, np.arange(3, dtype=np.int32))

    assert [is_shared(each) for each in got] == [False, True, False, False]
    assert np.array_equal(got[0], ids)
    assert np.array_equal(got[2], flags)


def test_tensors_of_every_kind_lie_side_by_side(ends: Ends) -> None:
    sent = [
        rows(1.0),
        np.zeros((0, 16), np.float32),
        np.arange(5, dtype=np.float16),
        np.arange(7, dtype=np.uint16),
        np.arange(-3, 4, dtype=np.int8),
        np.arange(12.0).reshape(3, 4).T,
        np.array(2.5),
        rows(2.0),
    ]

    got = ends.send(*sent)

    assert [each.dtype for each in got] == [each.dtype for each in sent]
    assert all(np.array_equal(a, b) for a, b in zip(got, sent, strict=True))


def test_a_reply_made_in_the_segment_is_not_copied(ends: Ends) -> None:
    ends.send(np.arange(3))
    made = ends.pserver.empty((ROWS, 16))
    made[:] = 7.0

    (got,) = ends.reply(made)

    assert is_shared(made)
    assert (got == 7.0).all()
    made[0, 0] = 8.0  # the same memory
    assert got[0, 0] == 8.0


def test_what_joins_a_reply_in_the_segment_lies_behind_it(ends: Ends) -> None:
    ends.send(np.arange(3))
    first, second = ends.pserver.empty((ROWS, 16)), ends.pserver.empty((ROWS, 16))
    first[:], second[:] = 1.0, 2.0

    got = ends.reply(second, rows(3.0, 2), first)

    assert [each[0, 0] for each in got] == [2.0, 3.0, 1.0]
    assert [(each == each[0, 0]).all() for each in got] == [True] * 3


def test_a_reply_that_does_not_fit_its_segment_travels_and_the_next_one_fits(ends: Ends) -> None:
    ends.send(np.arange(3))
    made = ends.pserver.empty((ROWS, 16))
    made[:] = 1.0
    large = rows(2.0, MIB // 64)

    first = ends.reply(made, large)
    ends.send(np.arange(3))
    second = ends.reply(rows(3.0), large)

    assert [each[0, 0] for each in [*first, *second]] == [1.0, 2.0, 3.0, 2.0]
    assert [is_shared(each) for each in [*first, *second]] == [False, False, True, True]


def test_a_payload_is_kept_while_somebody_looks_at_it(ends: Ends) -> None:
    kept = []

    for number in range(4 * MAX_SEGMENTS):
        ends.send(np.arange(3))
        kept += ends.reply(rows(number))

    assert [each[0, 0] for each in kept] == list(range(4 * MAX_SEGMENTS))
    assert all((each == each[0, 0]).all() for each in kept)
    assert sum(map(is_shared, kept)) == MAX_SEGMENTS


def test_memory_that_nobody_looks_at_is_used_again(ends: Ends) -> None:
    places = set()

    for number in range(10):
        (got,) = ends.send(rows(number))
        places.add(address(got))
        del got
        ends.reply()

    assert len(places) == 1


def test_a_segment_grows_with_its_payloads_and_views_of_the_old_one_stay_valid(ends: Ends) -> None:
    (small,) = ends.send(rows(1.0))
    ends.reply()

    for count in (ROWS, MIB // 64 + 1, 2 * MIB // 64 + 1):
        (got,) = ends.send(rows(2.0, count))
        assert is_shared(got)
        assert (got == 2.0).all()
        del got
        ends.reply()

    assert (small == 1.0).all()


def test_mappings_go_with_the_connection() -> None:
    before, ends = shared_mappings(), Ends()
    (got,) = ends.send(rows(1.0))
    ends.reply(rows(2.0))

    ends.close()
    del ends
    assert (got == 1.0).all()
    del got

    assert shared_mappings() == before


def test_an_end_that_was_not_told_of_shared_memory_is_sent_payloads() -> None:
    ends = Ends(agreed=False)

    (first,) = ends.send(rows(1.0))
    made = ends.pserver.empty((ROWS, 16))

    assert not is_shared(first)
    assert is_shared(made)  # the client's frames announce that it maps segments
    ends.close()


@pytest.mark.parametrize("error", [OSError(28, "no space"), OSError(1, "not permitted")])
def test_without_memory_to_share_payloads_travel_and_it_is_asked_for_once(
    ends: Ends, error: OSError, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "psrt.rpc")
    asked = []

    def refuse(name: str, flags: int) -> int:
        asked.append(name)
        raise error

    monkeypatch.setattr(os, "memfd_create", refuse)
    for number in range(3):
        (got,) = ends.send(rows(number))
        assert (got == number).all()
        ends.reply()

    assert len(asked) == 1
    assert [record.message for record in caplog.records] == [
        f"no memory to share ({error}): payloads travel through the socket"
    ]


def test_a_descriptor_of_a_segment_that_cannot_be_filled_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(fd: int, offset: int, size_bytes: int) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr(os, "posix_fallocate", full)
    before = descriptors()

    with pytest.raises(OSError, match="no space"):
        Segment(MIB)

    assert descriptors() == before


def test_segments_that_were_never_passed_are_closed() -> None:
    before, own = descriptors(), LocalSegments(LIMIT)
    own.empty((ROWS, 16))
    assert descriptors() > before

    own.close()

    assert descriptors() == before
    assert own.pack([rows(1.0)]) is None


# --- strangers --------------------------------------------------------------------------------


def memfd(size_bytes: int, seals: int = segments._SEALS) -> int:
    import fcntl

    fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size_bytes)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def a_pipe() -> int:
    reading, writing = os.pipe()
    os.close(writing)
    return reading


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: memfd(MIB, 0), "whose size it could still change"),
        (lambda: memfd(16 * MIB), "the limit is"),
        (lambda: memfd(0), "the limit is"),
        (a_pipe, "no memory"),
    ],
    ids=["not sealed", "too large", "empty", "a pipe"],
)
def test_a_descriptor_that_is_no_segment_is_refused_and_closed(
    make: Callable[[], int], text: str
) -> None:
    before = descriptors()

    with pytest.raises(WireError, match=text):
        attach(make(), LIMIT)

    assert descriptors() == before


def test_a_segment_keeps_its_size_and_its_readers_cannot_write() -> None:
    segment = Segment(MIB)
    fd = segment.fd
    assert fd is not None
    with pytest.raises(OSError, match="not permitted"):
        os.ftruncate(fd, 0)

    seen = attach(os.dup(fd), LIMIT)

    assert not seen.flags.writeable
    segment.memory[5] = 9
    assert seen[5] == 9
    segment.close_fd()


class Stranger:
    """The far end of a connection, which says what it likes."""

    def __init__(self) -> None:
        self.sock, far = socket.socketpair()
        self.pserver = FrameSocket(far, 1 << 30, shared=SharedMemory(LIMIT))

    def say(self, flags: int, *fds: int, payload_bytes: int = 64) -> None:
        tensor = np.zeros(payload_bytes // 4, np.float32)
        head = encode_apart(Message(pb.Header(), [tensor]), (0,), payload_bytes)
        frame = preamble(len(head), flags=flags) + head
        if fds:
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack(f"{len(fds)}i", *fds))
            self.sock.sendmsg([frame], [rights])
        else:
            self.sock.sendall(frame)
        for fd in fds:
            os.close(fd)

    def close(self) -> None:
        self.sock.close()
        self.pserver.close()


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    before = descriptors()
    made = Stranger()
    yield made
    made.close()
    assert descriptors() == before


def test_a_stranger_that_does_it_right_is_understood(stranger: Stranger) -> None:
    stranger.say(SHARES | APART | NEW, memfd(MIB))

    (got,) = received(stranger.pserver)

    assert (got == 0.0).all()


@pytest.mark.parametrize(
    ("flags", "fds", "payload_bytes", "text"),
    [
        (SHARES | APART | NEW, 0, 64, "did not arrive"),
        (SHARES | APART, 0, 64, "announced in 0"),
        (SHARES | APART | NEW | 2 << 4, 1, 64, "segment 2"),
        (SHARES | APART | 15 << 4, 0, 64, "segment 15"),
        (SHARES | APART | NEW, 1, MIB + 64, "announced in 1048576"),
        (SHARES, 4, 64, "no frame has announced"),
        (SHARES, 0, 64, "arrived"),
    ],
    ids=[
        "no descriptor",
        "no segment",
        "one segment too many",
        "far too many",
        "beyond the segment",
        "descriptors for nothing",
        "no payload at all",
    ],
)
def test_frames_that_make_no_sense_are_refused(
    stranger: Stranger, flags: int, fds: int, payload_bytes: int, text: str
) -> None:
    stranger.say(flags, *[memfd(MIB) for _ in range(fds)], payload_bytes=payload_bytes)

    with pytest.raises(WireError, match=text) as refused:
        stranger.pserver.receive()

    codes = (ErrorCode.WIRE_GARBAGE, ErrorCode.WIRE_TRUNCATED, ErrorCode.SEGMENT_REFUSED)
    assert refused.value.code in codes


def test_an_unfinished_frame_cannot_hide_descriptors(stranger: Stranger) -> None:
    passed = [memfd(MIB) for _ in range(4)]
    data = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("4i", *passed))]
    stranger.sock.sendmsg([preamble(1 << 20, flags=SHARES)], data)

    with pytest.raises(WireError, match="no frame has announced"):
        stranger.pserver.receive()

    for each in passed:
        os.close(each)


def test_a_pserver_without_descriptors_left_gets_the_payload_through_the_socket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attach_here = segments.RemoteSegments.attach

    def nothing_left(remote: Any, number: int, fd: int) -> None:
        if threading.current_thread() is threading.main_thread():
            return attach_here(remote, number, fd)
        os.close(fd)
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(segments.RemoteSegments, "attach", nothing_left)
    server = Server(echo, unix_dir="", shared_bytes=LIMIT)
    server.start()
    connection = connect_unix(server.unix_path, WAIT_S, shared_bytes=LIMIT)
    rows = np.arange(ROWS * 16, dtype=np.float32)

    for request in (1, 2):
        header = pb.Header(protocol=1, method=Method.PUSH, request_id=request)
        reply = connection.call(Message(header, [rows]), WAIT_S)
        assert np.array_equal(reply.tensors[0], rows)

    connection.close()
    server.stop(0.0)


def test_a_tensor_beyond_its_payload_is_refused(stranger: Stranger) -> None:
    tensor = np.zeros(100, np.float32)
    head = encode_apart(Message(pb.Header(), [tensor]), (MIB - 64,), MIB)
    frame = preamble(len(head), flags=SHARES | APART | NEW) + head
    fd = memfd(MIB)
    socket.send_fds(stranger.sock, [frame], [fd])
    os.close(fd)

    with pytest.raises(WireError):
        stranger.pserver.receive()


def test_ids_are_those_that_were_checked_whatever_their_sender_writes_later() -> None:
    ends = Ends()
    ids = np.arange(MIN_PAYLOAD_BYTES // 8)
    (got,) = ends.send(ids)

    shared: Any = ends.client._shared
    shared._local._segments[0].memory[:] = 255

    assert np.array_equal(got, ids)
    ends.close()


def test_reserved_memory_of_a_reply_that_was_never_sent_is_free_again(ends: Ends) -> None:
    ends.send(np.arange(3))
    dropped = ends.pserver.empty((ROWS, 16))
    ends.send(np.arange(3))  # the call before ended with an error

    made = ends.pserver.empty((ROWS, 16))

    assert address(made) == address(dropped)
    assert MAX_SEGMENTS == 2
