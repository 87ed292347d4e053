"""Tensors of a reply that are received where they belong, and the others beside them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from psrt.core.errors import WireError
from psrt.rpc import pb
from psrt.rpc.stream.sockets import FrameSocket
from psrt.rpc.wire.frames import Message, encode
from psrt.rpc.wire.preamble import preamble
from psrt.rpc.wire.receive_into import receive_into

LIMIT = 64 << 20
LARGE = 100_003  # numbers, so many that they do not come with the head of a frame


def numbers(seed: int, size: int = LARGE) -> np.ndarray:
    return np.random.default_rng(seed).random(size, np.float32)


def bytes_of(*tensors: np.ndarray) -> bytes:
    return b"".join(encode(Message(pb.Header(round=5), list(tensors))))


Ends = tuple[socket.socket, FrameSocket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """A socket to write bytes to, and the frames that come out at the other end."""
    here, there = socket.socketpair()
    frames = FrameSocket(there, LIMIT)
    yield here, frames
    here.close()
    frames.close()


def received(ends: Ends, frame: bytes, into: list[np.ndarray | None]) -> Message:
    sock, frames = ends
    sender = threading.Thread(target=sock.sendall, args=(preamble(len(frame)) + frame,))
    sender.start()
    message = frames.receive(into)
    sender.join(10.0)
    assert message is not None
    return message


def test_a_large_tensor_is_received_into_the_array_that_was_named(ends: Ends) -> None:
    out = np.zeros(LARGE, np.float32)

    message = received(ends, bytes_of(numbers(1)), [out])

    assert message.tensors[0] is out
    assert message.header.round == 5
    np.testing.assert_array_equal(out, numbers(1))


def test_tensors_between_those_that_have_a_place_arrive_too(ends: Ends) -> None:
    sent = [numbers(1), numbers(2, 7), np.empty(0, np.int64), numbers(3), numbers(4), numbers(5, 3)]
    into: list[np.ndarray | None] = [None, None, None, np.zeros(LARGE, np.float32)]
    into += [np.zeros(LARGE, np.float32)]

    message = received(ends, bytes_of(*sent), into)

    assert [
        tensor is receive_into for tensor, receive_into in zip(message.tensors, into, strict=False)
    ] == [*(False, False, False, True, True)]
    for tensor, numbers_sent in zip(message.tensors, sent, strict=True):
        np.testing.assert_array_equal(tensor, numbers_sent)


@pytest.mark.parametrize(
    "unfit",
    [
        np.zeros(LARGE - 1, np.float32),
        np.zeros((LARGE, 1), np.float32),
        np.zeros(LARGE, np.int32),
        np.zeros(2 * LARGE, np.float32)[::2],
    ],
    ids=["size", "shape", "dtype", "stride"],
)
def test_an_array_that_does_not_fit_is_left_alone(ends: Ends, unfit: np.ndarray) -> None:
    message = received(ends, bytes_of(numbers(1)), [unfit])

    np.testing.assert_array_equal(message.tensors[0], numbers(1))
    assert not unfit.any()


def test_small_messages_come_one_after_the_other_however_they_were_sent(ends: Ends) -> None:
    sock, frames = ends
    small, larger = bytes_of(numbers(1, 10)), bytes_of(numbers(2, 30_000))
    both = preamble(len(small)) + small + preamble(len(larger)) + larger
    sender = threading.Thread(target=sock.sendall, args=(both,))
    sender.start()

    messages = [frames.receive(), frames.receive()]
    sender.join(10.0)
    sock.close()

    assert all(message is not None for message in messages)
    np.testing.assert_array_equal(messages[0].tensors[0], numbers(1, 10))
    np.testing.assert_array_equal(messages[1].tensors[0], numbers(2, 30_000))
    assert frames.receive() is None


def test_a_frame_that_ends_early_is_refused_when_it_goes_into_arrays_too(ends: Ends) -> None:
    sock, frames = ends
    frame = bytes_of(numbers(1))
    start = preamble(len(frame)) + frame[: len(frame) // 2]
    sender = threading.Thread(target=lambda: (sock.sendall(start), sock.close()))
    sender.start()

    with pytest.raises(WireError, match=f"{len(frame) // 2} bytes arrived, {len(frame)}"):
        frames.receive([np.zeros(LARGE, np.float32)])
    sender.join(10.0)


# --- strangers' frames ------------------------------------------------------------------------


def frame_of(padding: int, payload: np.ndarray, *tensors: pb.Tensor) -> bytes:
    """A frame as any protobuf library would write it: 1 of 4 paddings aligns its numbers."""
    header = pb.Header(tensors=tensors, payload_bytes=payload.nbytes, padding=bytes(padding))
    return bytes(pb.Frame(header=header, payload=payload.tobytes()).SerializeToString())


def test_tensors_that_overlap_are_received_as_they_lie(ends: Ends) -> None:
    out = [np.zeros(LARGE, np.float32), np.zeros(LARGE, np.float32)]
    twice = [pb.Tensor(dtype=1, shape=[LARGE])] * 2

    messages = [received(ends, frame_of(p, numbers(1), *twice), out) for p in range(4)]

    for message in messages:
        np.testing.assert_array_equal(message.tensors[0], numbers(1))
        np.testing.assert_array_equal(message.tensors[1], numbers(1))
    assert not any(each.any() for each in out)


def test_a_payload_that_is_not_aligned_is_received_as_it_lies(ends: Ends) -> None:
    out = np.zeros(LARGE, np.float32)
    tensor = pb.Tensor(dtype=1, shape=[LARGE])

    messages = [received(ends, frame_of(p, numbers(1), tensor), [out]) for p in range(4)]

    for message in messages:
        np.testing.assert_array_equal(message.tensors[0], numbers(1))
    assert {message.tensors[0] is out for message in messages} == {True, False}


def test_without_the_whole_head_nothing_is_placed() -> None:
    frame = np.frombuffer(bytes_of(numbers(1)), np.uint8)
    out = np.zeros(LARGE, np.float32)

    assert [receive_into(frame, got, [out]) for got in (0, 1, 5, 12)] == [None] * 4
    assert not out.any()
