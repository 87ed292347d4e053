"""Mutations of frames: of their bytes, and of the fields of their headers.

Bytes are flipped, cut, doubled and exchanged. Fields get values at the edges of their types, texts
that are long or no UTF-8, and are repeated or left out; so a frame passes the first checks and
reaches those of its call.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from google.protobuf.descriptor import FieldDescriptor as Field

from psrt.core.errors import PsrtError
from psrt.rpc.wire.frames import frame_head, parse

MOST_BYTES = 1 << 16
WHOLE = (0, 1, 2, 3, 7, 8, 63, 64, 127, 128, 255, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
LARGE = (1 << 32, 1 << 40, (1 << 62), (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-45, 3e38, float("inf"), float("-inf"), float("nan"))
TEXTS = ("", "w", "emb", "fuzz", "plan", "{}", "[]", "null", '{"', "\0", "\x1b[2J\n", "é" * 50)
NUMBERS = ("-1", "0", "1e999", "NaN", "4294967296", "9223372036854775808", "1" * 40, "null", "[]")
_RANGES = {
    Field.TYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    Field.TYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    Field.TYPE_SINT64: (-(1 << 63), (1 << 63) - 1),
    Field.TYPE_UINT32: (0, (1 << 32) - 1),
    Field.TYPE_FIXED64: (0, (1 << 64) - 1),
    Field.TYPE_UINT64: (0, (1 << 64) - 1),
    Field.TYPE_ENUM: (-(1 << 31), (1 << 31) - 1),
}


def mutated(frame: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """A frame near `frame`, of MOST_BYTES at most."""
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        if draw.random() < 0.6:
            frame = _with_other_fields(frame, draw)
        else:
            frame = draw.choice(_OF_BYTES)(frame, draw, others)
    return frame[:MOST_BYTES]


# --- bytes ----------------------------------------------------------------------------------------


def _flip(frame: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    changed = bytearray(frame or b"\0")
    for _ in range(draw.choice((1, 1, 2, 8))):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _put(frame: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    at = draw.randrange(len(frame) + 1)
    edge = draw.choice((b"\xff" * 9 + b"\x01", b"\x80" * 10, b"\x7f", b"\x00", b"\xff\xff\xff\x7f"))
    return frame[:at] + edge + frame[at + draw.choice((0, len(edge))) :]


def _cut(frame: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    first, last = sorted(draw.randrange(len(frame) + 1) for _ in range(2))
    return draw.choice((frame[:first], frame[:first] + frame[last:], frame[last:]))


def _double(frame: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    first, last = sorted(draw.randrange(len(frame) + 1) for _ in range(2))
    return frame[:last] + frame[first:last] * draw.choice((1, 2, 50)) + frame[last:]


def _splice(frame: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    other = draw.choice(others)
    return frame[: draw.randrange(len(frame) + 1)] + other[draw.randrange(len(other) + 1) :]


_OF_BYTES: tuple[Callable[[bytes, random.Random, Sequence[bytes]], bytes], ...] = (
    *(_flip, _flip, _put, _cut),
    *(_double, _splice),
)


# --- fields ---------------------------------------------------------------------------------------


def _with_other_fields(frame: bytes, draw: random.Random) -> bytes:
    try:
        header, payload = parse(frame)
    except PsrtError:
        return _flip(frame, draw, ())
    for _ in range(draw.choice((1, 1, 2, 3))):
        _change(header, draw)
    return frame_head(header.SerializeToString(), len(payload)) + bytes(payload)


def _change(message: Any, draw: random.Random) -> None:
    """Change one field of `message`, or of a message inside it."""
    field = draw.choice(message.DESCRIPTOR.fields)
    present = [each for each, _ in message.ListFields()]
    if present and draw.random() < 0.6:
        field = draw.choice(present)
    if draw.random() < 0.1:
        message.ClearField(field.name)
    elif field.message_type is not None and field.message_type.GetOptions().map_entry:
        _change_map(getattr(message, field.name), field.message_type.fields_by_name, draw)
    elif field.is_repeated:
        _change_list(getattr(message, field.name), field, draw)
    elif field.message_type is not None:
        _change(getattr(message, field.name), draw)
    else:
        setattr(message, field.name, _value(field, getattr(message, field.name), draw))


def _change_map(values: Any, entry: Any, draw: random.Random) -> None:
    key, value = (_NOTHING.get(entry[name].cpp_type, 0) for name in ("key", "value"))
    values[_value(entry["key"], key, draw)] = _value(entry["value"], value, draw)


def _change_list(values: Any, field: Any, draw: random.Random) -> None:
    kind, count = draw.randrange(4), len(values)
    if count and kind == 0:
        del values[draw.randrange(count)]
    elif count and kind == 1 and field.message_type is not None:
        _change(draw.choice(values), draw)
    elif count and kind == 2:
        values.extend([values[draw.randrange(count)]] * draw.choice((1, 1, 9, 200)))
    elif field.message_type is not None:
        _change(values.add(), draw)
    elif count and kind == 1:
        at = draw.randrange(count)
        values[at] = _value(field, values[at], draw)
    else:
        values.append(_value(field, _NOTHING.get(field.cpp_type, 0), draw))


_NOTHING: dict[int, Any] = {Field.CPPTYPE_STRING: ""}


def _value(field: Any, now: Any, draw: random.Random) -> Any:
    match field.cpp_type:
        case Field.CPPTYPE_STRING:
            return _bytes(now, draw) if field.type == Field.TYPE_BYTES else _text(now, draw)
        case Field.CPPTYPE_BOOL:
            return not now
        case Field.CPPTYPE_FLOAT | Field.CPPTYPE_DOUBLE:
            return draw.choice(FLOATS)
    least, most = _RANGES[field.type]
    near = now + draw.choice((-1, 1)) if draw.random() < 0.3 else draw.choice((*WHOLE, *LARGE))
    return min(max(near, least), most)


def _bytes(now: Any, draw: random.Random) -> bytes:
    plain = now if isinstance(now, bytes) else b""
    return draw.choice((b"", plain[:-1], plain * 2, draw.randbytes(32), b"\0" * 32))


def _text(now: Any, draw: random.Random) -> str:
    text = now if isinstance(now, str) else ""
    if not text or draw.random() < 0.3:
        return draw.choice((*TEXTS, "x" * draw.choice((100, 10_000))))
    at = draw.randrange(len(text))
    if text[at].isdigit():  # of a spec in JSON
        return text[:at] + draw.choice(NUMBERS) + text[at + 1 :]
    return text[:at] + draw.choice(('"', "{", "}", "[", ",", "", "-", "9")) + text[at + 1 :]
