"""Limits of a header, checked before anything is built from it.

Two bytes of a protobuf header are an empty message that takes 88 bytes of memory. So a header is
small, and the messages and texts of a large one are counted before they are made.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from psrt.core.errors import ErrorCode, WireError
from psrt.rpc import pb
from psrt.rpc.wire.preamble import truncated

GREETING_BYTES = 64 << 10
"""Limit of a frame from a peer that has not been greeted yet."""

MAX_HEADER_BYTES = 4 << 20
MAX_FIELDS = 1 << 18
LONGEST_VARINT_BYTES = 10
_UNCOUNTED_BYTES = 1 << 20  # the most that a header of this size takes is 44 MiB
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5  # wire types of protobuf
_FIXED_BYTES = {_FIXED64: 8, _FIXED32: 4}


def check_header(encoded: memoryview) -> None:
    """Raise `WireError` for a header that is too large, or has too many fields."""
    if len(encoded) > MAX_HEADER_BYTES:
        raise _too_large(f"A header of {len(encoded)} bytes", f"{MAX_HEADER_BYTES} bytes")
    if len(encoded) > _UNCOUNTED_BYTES:
        _Counter().count(encoded, pb.Header.DESCRIPTOR)


def read_varint(view: memoryview, position: int) -> tuple[int, int]:
    """The number at `position`, and the position behind it."""
    value = 0
    for shift in range(0, 7 * LONGEST_VARINT_BYTES, 7):
        if position >= len(view):
            raise truncated("half of a length", "all of it")
        byte = view[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise WireError("A number in a frame has more than 64 bits.")


class _Counter:
    """Messages and texts found so far; each step reads one field, so the work is bounded."""

    def __init__(self) -> None:
        self._left = MAX_FIELDS

    def count(self, view: memoryview, descriptor: Any) -> None:
        """Count the fields of an encoded message of this type, and of those inside."""
        position = 0
        while position < len(view):
            self._left -= 1
            if self._left < 0:
                raise _too_large("A header with more fields", f"{MAX_FIELDS} fields")
            tag, position = read_varint(view, position)
            position = self._skip(view, position, tag & 7, _type_of(descriptor, tag >> 3))

    def _skip(self, view: memoryview, position: int, kind: int, descriptor: Any) -> int:
        """The position behind a value; counts what is in it if it is a message."""
        if kind == _VARINT:
            return read_varint(view, position)[1]
        if kind in _FIXED_BYTES:
            return position + _FIXED_BYTES[kind]
        if kind != _LENGTH:
            raise WireError(f"A header has a field of the unknown kind {kind}.")
        size, start = read_varint(view, position)
        if descriptor is not None:
            self.count(view[start : start + size], descriptor)
        return start + size


def _type_of(descriptor: Any, number: int) -> Any:
    """The type of the messages in field `number`; None for fields of other values."""
    field = descriptor.fields_by_number.get(number)
    is_message = field is not None and field.type == FieldDescriptor.TYPE_MESSAGE
    return field.message_type if is_message else None


def _too_large(what: str, limit: str) -> WireError:
    return WireError(
        f"{what} was refused; the limit is {limit}.",
        code=ErrorCode.WIRE_TOO_LARGE,
        hint="Use more pservers: each then has fewer tables and blocks.",
    )
