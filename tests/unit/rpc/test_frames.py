"""The bytes of a message, against protobuf's own encoder and against committed golden frames."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from psrt.core.errors import ErrorCode, WireError
from psrt.rpc import pb
from psrt.rpc.wire.buffers import ALIGNMENT, ReceiveBuffers, aligned_empty
from psrt.rpc.wire.frames import Message, decode, encode, frame_head
from psrt.rpc.wire.pieces import Joiner, split
from psrt.rpc.wire.preamble import (
    MAX_FRAME_BYTES,
    PREAMBLE_BYTES,
    StrangerError,
    parse_preamble,
    preamble,
)

GOLDEN = Path(__file__).parents[2] / "golden"


def push_message() -> Message:
    header = pb.Header(
        protocol=1,
        method=4,
        request_id=300,
        trainer=1,
        timeout_ms=5000,
        push_key=pb.PushKey(incarnation=9, sequence=2),
        step=1,
        parts=[pb.Part(kind=2, table="emb", version=7)],
    )
    ids = np.array([5, -1], np.int64)
    return Message(header, [ids, np.array([[1.0, 2.0], [3.0, -4.0]], np.float32)])


def pull_message() -> Message:
    parts = [pb.Part(kind=3, table="fc_0.w_0")]
    return Message(pb.Header(protocol=1, method=3, request_id=1, parts=parts))


def narrow_push_message() -> Message:
    """Rows in float16 of a list that the pserver remembers, with counts; a block in int8."""
    parts = [
        pb.Part(kind=2, table="emb", version=7, keys=0x0123456789ABCDEF, factor=0.25, counts=True),
        pb.Part(kind=1, table="fc_0.w_0"),
    ]
    header = pb.Header(
        protocol=1,
        method=5,
        request_id=301,
        push_key=pb.PushKey(incarnation=9, sequence=3),
        parts=parts,
    )
    rows = np.array([[1.0, 2.0], [3.0, -4.0]], np.float16)
    counts = np.array([[3, 1], [1, 0]], np.float32)
    block, scales = np.array([127, -5, 0], np.int8), np.array([0.5], np.float32)
    return Message(header, [rows, counts, block, scales])


def narrow_pull_message() -> Message:
    parts = [
        pb.Part(kind=4, table="emb", wire=7, keys=0x0123456789ABCDEF),
        pb.Part(kind=3, table="fc_0.w_0", wire=8),
    ]
    header = pb.Header(protocol=1, method=3, request_id=2, parts=parts)
    return Message(header, [np.array([5, -1], np.int64)])


def bfloat16_message() -> Message:
    """The reply to that, its first half."""
    parts = [pb.Part(kind=4, table="emb", version=8, keys=0x0123456789ABCDEF)]
    rows = np.array([[0x3F80, 0x4000], [0x4040, 0xC080]], np.uint16)  # 1, 2, 3, -4
    return Message(pb.Header(protocol=1, method=3, request_id=2, reply=True, parts=parts), [rows])


def traced_message() -> Message:
    """The pull, of a traced step."""
    message = pull_message()
    message.header.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    return message


GOLDEN_FRAMES = [
    ("push", push_message),
    ("pull_traced", traced_message),
    ("pull", pull_message),
    ("push_narrow", narrow_push_message),
    ("pull_narrow", narrow_pull_message),
    ("reply_narrow", bfloat16_message),
]


def joined(message: Message) -> bytes:
    return b"".join(encode(message))


# --- the bytes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "build"), GOLDEN_FRAMES)
def test_frames_are_the_golden_bytes(name: str, build: object) -> None:
    """Version 1 never changes: a difference here is a new protocol version."""
    message = build()  # type: ignore[operator]

    golden = bytes.fromhex((GOLDEN / f"frames_{name}.hex").read_text())
    frame = joined(message)

    assert (preamble(len(frame)) + frame).hex() == golden.hex()


def test_any_protobuf_decoder_reads_a_frame() -> None:
    frame = pb.Frame.FromString(joined(push_message()))

    ids, values = frame.header.tensors
    payload = frame.payload
    assert frame.header.payload_bytes == len(payload)
    assert np.frombuffer(payload, np.int64, 2, ids.offset).tolist() == [5, -1]
    assert np.frombuffer(payload, np.float32, 4, values.offset).tolist() == [1.0, 2.0, 3.0, -4.0]
    assert frame.header.parts[0].table == "emb"


def test_frame_of_any_protobuf_encoder_is_read() -> None:
    header = pb.Header(method=3, payload_bytes=72, tensors=[pb.Tensor(dtype=2, shape=[9])])
    frame = pb.Frame(header=header, payload=np.arange(9).tobytes()).SerializeToString()
    shifted = aligned_empty(len(frame) + 1)[1:]
    shifted[:] = np.frombuffer(frame, np.uint8)

    message = decode(shifted)

    assert message.tensors[0].tolist() == list(range(9))
    assert message.tensors[0].flags.aligned


@pytest.mark.parametrize("payload_bytes", [1, 127, 128, 1 << 14, 1 << 21, 1 << 30])
def test_payload_is_aligned_for_every_length_of_header(payload_bytes: int) -> None:
    lengths = [*range(300), *range(16200, 16500), *range(2097080, 2097160)]

    heads = {n: frame_head(bytes(n), payload_bytes) for n in lengths}

    assert all(len(head) % ALIGNMENT == 0 for head in heads.values())
    assert all(len(head) - n < 3 * ALIGNMENT for n, head in heads.items())


def test_tensors_start_on_64_byte_boundaries_and_are_not_copied() -> None:
    tensors = [np.arange(3, dtype=np.float32), np.arange(5, dtype=np.int64)]

    parts = encode(Message(pb.Header(), tensors))

    assert len(parts[0]) % ALIGNMENT == 0
    assert [len(part) for part in parts[1:]] == [12, 52, 40]
    assert np.shares_memory(np.frombuffer(parts[1], np.uint8), tensors[0])
    assert np.shares_memory(np.frombuffer(parts[3], np.uint8), tensors[1])


def test_encoding_leaves_the_header_as_it_was_and_decoding_gives_it_back() -> None:
    message = push_message()
    before = message.header.SerializeToString()

    decoded = decode(joined(message))

    assert message.header.SerializeToString() == before
    assert decoded.header.SerializeToString() == before


def test_decoded_tensors_are_read_only_views_of_the_buffer() -> None:
    buffer = np.frombuffer(bytearray(joined(push_message())), np.uint8)

    message = decode(buffer)

    assert all(np.shares_memory(tensor, buffer) for tensor in message.tensors)
    assert not any(tensor.flags.writeable for tensor in message.tensors)


# --- strangers' bytes -----------------------------------------------------------------------------


def frame_with(header: pb.Header, payload: bytes = bytes(64)) -> bytes:
    header.payload_bytes = header.payload_bytes or len(payload)
    return bytes(pb.Frame(header=header, payload=payload).SerializeToString())


def tensor_frame(**fields: object) -> bytes:
    return frame_with(pb.Header(tensors=[pb.Tensor(**fields)]))  # type: ignore[arg-type]


MALFORMED = {
    "empty": b"",
    "text": b"GET / HTTP/1.1\r\n\r\n",
    "payload only": b"\x12\x01x",
    "field twice": b"\x0a\x00\x0a\x00",
    "unknown field": b"\x0a\x00\x1a\x00",
    "endless length": b"\x0a" + b"\xff" * 12,
    "half a length": b"\x0a\x80",
    "header not protobuf": b"\x0a\x03\xff\xff\xff",
    "header longer than frame": b"\x0a\x7f\x08",
    "payload shorter than said": frame_with(pb.Header(payload_bytes=65)),
    "piece of a split message": frame_with(pb.Header(payload_start=64)),
    "unknown dtype": tensor_frame(dtype=77, shape=[1]),
    "no dtype": tensor_frame(shape=[1]),
    "tensor behind the end": tensor_frame(dtype=1, shape=[16], offset=64),
    "offset not aligned": tensor_frame(dtype=1, shape=[1], offset=4),
    "huge shape": tensor_frame(dtype=1, shape=[2**63, 2**63]),
    "huge empty shape": tensor_frame(dtype=1, shape=[0, 2**62]),
    "too many dimensions": tensor_frame(dtype=1, shape=[1] * 65),
}


@pytest.mark.parametrize("frame", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_frame_is_a_wire_error(frame: bytes) -> None:
    with pytest.raises(WireError):
        decode(frame)


def test_no_damage_to_a_frame_raises_anything_but_a_wire_error() -> None:
    dice = random.Random(20)
    whole = joined(push_message())
    outcomes = {"read": 0, "refused": 0}

    for _ in range(5000):
        damaged = bytearray(whole[: dice.randrange(1, len(whole) + 1)])
        for _ in range(dice.randrange(4)):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        try:
            decode(bytes(damaged))
            outcomes["read"] += 1
        except WireError:
            outcomes["refused"] += 1

    assert outcomes["refused"] > 1000


def test_preamble_is_16_bytes_and_gives_the_size_back() -> None:
    start = preamble(123456)

    assert len(start) == PREAMBLE_BYTES == 16
    assert parse_preamble(start) == (123456, 0)


def test_preamble_of_a_stranger_another_version_or_an_oversized_frame_is_refused() -> None:
    with pytest.raises(StrangerError, match="GET "):
        parse_preamble(b"GET / HTTP/1.1\r\n")
    with pytest.raises(WireError, match="version 2, this side speaks 1") as version:
        parse_preamble(preamble(10, version=2))
    with pytest.raises(WireError, match=str(MAX_FRAME_BYTES)) as size:
        parse_preamble(preamble(MAX_FRAME_BYTES + 1))

    assert version.value.code == ErrorCode.WIRE_VERSION
    assert size.value.code == ErrorCode.WIRE_TOO_LARGE


# --- split messages -------------------------------------------------------------------------------


def join(pieces: list[bytes]) -> Message:
    joiner = Joiner()
    for piece in pieces:
        joiner.add(piece)
    return joiner.message()


def test_split_message_is_joined_again() -> None:
    tensors = [np.arange(n, dtype=np.float32) for n in (1000, 7, 0, 3333)]
    header = pb.Header(method=4, request_id=2)

    pieces = list(split(Message(header, tensors), piece_bytes=1000))
    message = join(pieces)

    assert len(pieces) == 18
    assert all(len(pb.Frame.FromString(piece).payload) <= 1000 for piece in pieces)
    assert message.header.request_id == 2
    assert all(np.array_equal(a, b) for a, b in zip(message.tensors, tensors, strict=True))


def test_message_without_tensors_is_one_piece() -> None:
    pieces = list(split(pull_message()))

    assert pieces == [joined(pull_message())]


def pieces_of_300() -> list[bytes]:
    return list(split(Message(pb.Header(), [np.zeros(300, np.uint8)]), piece_bytes=100))


@pytest.mark.parametrize("order", [[], [0], [0, 1], [1], [0, 2], [0, 0], [0, 1, 2, 2]])
def test_missing_repeated_or_swapped_piece_is_a_wire_error(order: list[int]) -> None:
    pieces = pieces_of_300()

    with pytest.raises(WireError):
        join([pieces[i] for i in order])


def test_split_message_over_the_limit_is_refused_at_its_first_piece() -> None:
    joiner = Joiner(max_bytes=299)

    with pytest.raises(WireError, match="300 bytes was refused; the limit is 299"):
        joiner.add(pieces_of_300()[0])


# --- receive buffers ------------------------------------------------------------------------------


def test_buffer_is_reused_when_nobody_looks_at_it_and_only_then() -> None:
    buffers = ReceiveBuffers()
    first = buffers.take(1000)
    address = first.ctypes.data
    view = np.ndarray((10,), np.float32, buffer=first.data.toreadonly(), offset=64)[2:]
    del first

    second = buffers.take(1000)
    del view
    third = buffers.take(1000)

    assert second.ctypes.data != address
    assert third.ctypes.data == address


def test_buffers_are_aligned_and_grow() -> None:
    buffers = ReceiveBuffers()

    sizes = [1, 1 << 16, 100_000, 3 << 20]
    taken = [buffers.take(size) for size in sizes]

    assert all(len(buffer) >= size for buffer, size in zip(taken, sizes, strict=True))
    assert all(buffer.ctypes.data % ALIGNMENT == 0 for buffer in taken)


def test_an_empty_tensor_behind_others_lies_within_the_payload() -> None:
    tensors = [np.ones(4, np.float32), np.empty(0, np.int64), np.empty((0, 3), np.float32)]

    decoded = decode(joined(Message(pb.Header(), tensors))).tensors

    assert [tensor.shape for tensor in decoded] == [(4,), (0,), (0, 3)]
