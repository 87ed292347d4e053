"""Messages and their bytes: docs/reference/wire-format.md in code.

A `Message` is a header and its tensors; a frame is one protobuf `Frame` whose payload holds the
tensors. `encode` writes header bytes by hand and returns a gather list, so tensor memory is never
copied into protobuf objects; `decode` returns read-only views of its buffer. The fields that
describe the payload (`tensors`, `payload_bytes`, `payload_start`, `padding`) belong to the frame:
`encode` adds them, `decode` removes them.

`decode` accepts bytes from strangers: for any input it returns a message or raises `WireError`. All
functions are pure and may run on any thread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NoReturn, TypeAlias

import numpy as np
from google.protobuf.message import DecodeError

from psrt.core.errors import WireError
from psrt.core.types import F32, Array, Shape
from psrt.rpc import pb
from psrt.rpc.wire.buffers import ALIGNMENT, aligned, aligned_empty
from psrt.rpc.wire.codes import CODE_OF_DTYPE, DTYPE_OF_CODE
from psrt.rpc.wire.header_limits import LONGEST_VARINT_BYTES, check_header, read_varint
from psrt.rpc.wire.preamble import MAX_FRAME_BYTES, truncated

Buffer: TypeAlias = bytes | memoryview
Empty: TypeAlias = Callable[[Shape], F32]

_TAG_HEADER, _TAG_PAYLOAD = 0x0A, 0x12
_HEADER, _PAYLOAD = bytes([_TAG_HEADER]), bytes([_TAG_PAYLOAD])
_TAG_PADDING = b"\xaa\x01"  # field 21 of Header, length-delimited
_MAX_DIMENSIONS = 8

_WHOLE = tuple(map(np.dtype, ("<i8", "<i4", "u1")))  # ids and counts, which are checked first


def empty(shape: Shape) -> F32:
    """An uninitialised float32 array in private memory."""
    return np.empty(shape, np.float32)


@dataclass
class Message:
    """One call or one reply; `header.parts` consume `tensors` in order.

    Three fields do not travel. `into` of a call holds arrays to receive large tensors of its reply
    (`psrt.rpc.wire.receive_into`). `reply_limit` is the most bytes that the carrier sends in reply.
    `empty` makes float32 arrays of a shape that the carrier sends at the least expense.
    """

    header: pb.Header
    tensors: list[Array] = field(default_factory=list)
    into: Sequence[Array | None] = ()
    reply_limit: int = MAX_FRAME_BYTES
    empty: Empty = empty


# --- encoding -------------------------------------------------------------------------------------


def encode(message: Message) -> list[Buffer]:
    """Return a frame as a gather list; the payload starts 64-byte aligned in the frame."""
    layout, payload, payload_bytes = lay_out(message.tensors)
    header = message.header.SerializeToString() + layout
    return [frame_head(header, payload_bytes), *payload]


def encode_apart(message: Message, starts: tuple[int, ...], payload_bytes: int) -> bytes:
    """Return a frame without its payload, where tensor i begins at byte `starts[i]`."""
    kinds = tuple([(_code(tensor), tensor.shape) for tensor in message.tensors])
    header = message.header.SerializeToString() + _description(kinds, starts, payload_bytes)
    return frame_head(header, 0)


def lay_out(tensors: Sequence[Array]) -> tuple[bytes, list[Buffer], int]:
    """Return the header part that describes tensors, the payload as a gather list, and its size."""
    if not tensors:
        return b"", [], 0
    kinds = [(_code(tensor), tensor.shape) for tensor in tensors]
    layout, starts, end = _layout(tuple(kinds))
    payload: list[Buffer] = []
    filled = 0
    for tensor, start in zip(tensors, starts, strict=True):
        if tensor.size:
            if start > filled:
                payload.append(bytes(start - filled))
            payload.append(np.ascontiguousarray(tensor).data.cast("B"))
            filled = start + tensor.nbytes
    return layout, payload, end


@lru_cache(maxsize=1024)
def _layout(kinds: tuple[tuple[int, tuple[int, ...]], ...]) -> tuple[bytes, tuple[int, ...], int]:
    """Header part, start of each tensor and size of the payload, for (dtype code, shape) pairs.

    Cached, because most messages of a kind have equal codes and shapes.
    """
    starts, end = list[int](), 0
    for code, shape in kinds:
        size_bytes = math.prod(shape) * DTYPE_OF_CODE[code].itemsize
        # An empty tensor starts at 0: behind the last one may be outside of the payload.
        starts.append(aligned(end) if size_bytes else 0)
        if size_bytes:
            end = starts[-1] + size_bytes
    return _description(kinds, tuple(starts), end), tuple(starts), end


@lru_cache(maxsize=1024)
def _description(
    kinds: tuple[tuple[int, tuple[int, ...]], ...], starts: tuple[int, ...], payload_bytes: int
) -> bytes:
    """The header part that describes tensors and their starts."""
    layout = pb.Header(payload_bytes=payload_bytes)
    for (code, shape), start in zip(kinds, starts, strict=True):
        layout.tensors.add(dtype=code, shape=shape, offset=start)
    described: bytes = layout.SerializeToString()
    return described


def frame_head(header: bytes, payload_bytes: int) -> bytes:
    """Everything before the payload of a frame, padded to a multiple of 64 bytes.

    Protobuf joins concatenated encodings of one message, so the padding field goes behind `header`.
    """
    if not payload_bytes:
        return _HEADER + _varint(len(header)) + header
    tail = _PAYLOAD + _varint(payload_bytes)
    length = len(header) + len(_TAG_PADDING) + 1
    # The length prefix may itself grow by a byte when padding is added: 64 bytes more settle it.
    width = len(_varint(length + ALIGNMENT))
    padding = -(1 + width + length + len(tail)) % ALIGNMENT
    size = _varint(length + padding)
    if len(size) != width:
        padding += ALIGNMENT
        size = _varint(length + padding)
    return b"".join((_HEADER, size, header, _TAG_PADDING, _varint(padding), bytes(padding), tail))


def _code(tensor: Array) -> int:
    return CODE_OF_DTYPE.get(tensor.dtype) or _no_code(tensor)


def _no_code(tensor: Array) -> NoReturn:
    known = ", ".join(dtype.name for dtype in CODE_OF_DTYPE)
    message = f"A tensor of dtype {tensor.dtype} cannot be sent."
    raise WireError(message, hint=f"Convert it to one of {known}.")


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


# --- decoding -------------------------------------------------------------------------------------


def decode(buffer: Any) -> Message:
    """Return the message of one unsplit frame; its tensors are read-only views of `buffer`."""
    header, payload = parse(buffer)
    if header.payload_start or header.payload_bytes != len(payload):
        raise truncated(f"{len(payload)} bytes of payload", f"{header.payload_bytes}")
    return assemble(header, payload)


def decode_apart(buffer: Any, payload: Callable[[int], memoryview]) -> Message:
    """Return the message of a frame whose payload `payload(size_bytes)` finds elsewhere.

    The sender may still write there: tensors of whole numbers are copied, all others are views.
    """
    header, _ = parse(buffer)
    message = assemble(header, payload(header.payload_bytes))
    message.tensors = [_copy(each) if each.dtype in _WHOLE else each for each in message.tensors]
    return message


def parse(buffer: Any) -> tuple[pb.Header, memoryview]:
    """Return header and payload of one frame, which may be a piece of a split message."""
    view = memoryview(buffer).toreadonly().cast("B")
    fields: dict[int, memoryview] = {}
    position = 0
    while position < len(view):
        tag = view[position]
        if tag not in (_TAG_HEADER, _TAG_PAYLOAD) or tag in fields:
            raise WireError(f"Byte {position} of a frame holds tag {tag}, which is not a frame's.")
        size, position = read_varint(view, position + 1)
        if size > len(view) - position:
            raise truncated(f"{len(view) - position} bytes of a field", f"{size}")
        fields[tag] = view[position : position + size]
        position += size
    if _TAG_HEADER not in fields:
        raise WireError("A frame has no header.")
    return _parse_header(fields[_TAG_HEADER]), fields.get(_TAG_PAYLOAD, view[:0])


def head_has_come(frame: memoryview, got: int) -> bool:
    """True if the first `got` bytes of `frame` include all that `parse` reads."""
    if got <= LONGEST_VARINT_BYTES or frame[0] != _TAG_HEADER:
        return False
    size, position = read_varint(frame, 1)
    return position + size + 1 + LONGEST_VARINT_BYTES <= got


def assemble(header: pb.Header, payload: memoryview) -> Message:
    """Make tensors as views of a whole payload and remove the frame's fields from the header."""
    tensors = [_view(tensor, payload) for tensor in header.tensors]
    if [tensor for tensor in tensors if not tensor.flags.aligned]:
        # Another encoder need not align the payload, but kernels rely on it.
        payload = _aligned_copy(payload)
        tensors = [_view(tensor, payload) for tensor in header.tensors]
    for name in ("tensors", "payload_bytes", "padding"):
        header.ClearField(name)
    return Message(header, tensors)


def _copy(tensor: Array) -> Array:
    """A read-only copy."""
    copy = tensor.copy()
    copy.flags.writeable = False
    return copy


def _parse_header(encoded: memoryview) -> pb.Header:
    check_header(encoded)
    try:
        return pb.Header.FromString(encoded)
    except DecodeError as error:
        raise WireError(f"The header of a frame is not a protobuf Header: {error}.") from error


def _view(tensor: pb.Tensor, payload: memoryview) -> Array:
    dtype, shape, offset = DTYPE_OF_CODE.get(tensor.dtype), tuple(tensor.shape), tensor.offset
    if dtype is None or offset % ALIGNMENT or len(shape) > _MAX_DIMENSIONS:
        raise WireError(f"A tensor has dtype {tensor.dtype}, offset {offset}, shape {shape}.")
    if offset + math.prod(shape) * dtype.itemsize > len(payload):
        raise truncated(f"a payload of {len(payload)} bytes", f"shape {shape} at offset {offset}")
    try:
        return np.ndarray(shape, dtype, buffer=payload, offset=offset)
    except (ValueError, OverflowError) as error:  # such as shape (0, 2**62)
        raise WireError(f"A tensor has the impossible shape {shape}.") from error


def _aligned_copy(payload: memoryview) -> memoryview:
    copy = aligned_empty(len(payload))
    copy[:] = payload
    return copy.data.toreadonly()
