"""Headers that would take far more memory than their bytes are refused before they are built."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from psrt.core.errors import ErrorCode, WireError
from psrt.rpc import pb
from psrt.rpc.wire.frames import Message, decode, encode, frame_head
from psrt.rpc.wire.header_limits import MAX_FIELDS, MAX_HEADER_BYTES, check_header

EMPTY_PART = b"\x52\x00"  # field 10 of a header


def frame_of(header: bytes) -> bytes:
    return frame_head(header, 0)


def many_covered() -> pb.Lineage:
    return pb.Lineage(covered=[pb.Covered()] * MAX_FIELDS * 2)


def code_of(frame: bytes) -> ErrorCode:
    with pytest.raises(WireError) as caught:
        decode(frame)
    return caught.value.code


def test_a_header_of_many_empty_parts_is_refused_by_its_size() -> None:
    header = EMPTY_PART * (MAX_HEADER_BYTES // 2 + 1)

    assert code_of(frame_of(header)) == ErrorCode.WIRE_TOO_LARGE


@pytest.mark.parametrize(
    "header_of",
    [
        lambda: EMPTY_PART * MAX_FIELDS * 3,
        lambda: pb.Header(lineage=many_covered()).SerializeToString(),
        lambda: pb.Header(register=pb.Register(specs=[""] * MAX_FIELDS * 3)).SerializeToString(),
    ],
    ids=["parts", "nested messages", "empty texts"],
)
def test_fields_are_counted_before_they_are_built(header_of: Callable[[], bytes]) -> None:
    header = header_of()
    assert len(header) < MAX_HEADER_BYTES

    assert code_of(frame_of(header)) == ErrorCode.WIRE_TOO_LARGE


def test_a_large_header_of_few_fields_arrives() -> None:
    spec = "x" * 300_000
    sent = pb.Header(protocol=1, step=1 << 63, register=pb.Register(specs=[spec] * 10))

    received = decode(b"".join(encode(Message(sent)))).header

    assert received == sent


def test_every_kind_of_field_is_skipped() -> None:
    keys = pb.Part(kind=1, table="emb", keys=7, factor=0.5)
    header = pb.Header(parts=[keys] * 60_000).SerializeToString()
    assert len(header) > 1 << 20

    with pytest.raises(WireError, match="more fields"):
        check_header(memoryview(header))


@pytest.mark.parametrize("kind", [3, 4, 6, 7])
def test_a_field_of_an_unknown_kind_is_garbage(kind: int) -> None:
    header = bytes([8 | kind]) * (1 << 20) + b"\x00"

    assert code_of(frame_of(header)) == ErrorCode.WIRE_GARBAGE


def test_a_number_that_does_not_end_is_garbage() -> None:
    header = b"\x10" + b"\xff" * (1 << 20) + b"\x00"

    assert code_of(frame_of(header)) == ErrorCode.WIRE_GARBAGE
