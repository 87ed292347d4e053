"""The 16 bytes before each frame on the stream carrier, and the checks every carrier makes first.

Magic `PSRT`, version u16, flags u16, size of the frame u64; little-endian. The size is checked
before any memory is allocated for it. Flags are 0 except between ends that share memory
(`psrt.rpc.shm.shared_memory`).
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from psrt.core.errors import ErrorCode, WireError

PROTOCOL = 1
MAGIC = b"PSRT"
MAX_FRAME_BYTES = 1 << 30

_PREAMBLE = struct.Struct("<4sHHQ")
PREAMBLE_BYTES = _PREAMBLE.size


class StrangerError(WireError):
    """The peer does not speak psrt: no frame is sent in reply."""


class Announced(NamedTuple):
    """The fields of a preamble that describe the frame behind it."""

    size_bytes: int
    flags: int


def preamble(size_bytes: int, version: int = PROTOCOL, flags: int = 0) -> bytes:
    """Return the 16 bytes before a frame of `size_bytes`."""
    return _PREAMBLE.pack(MAGIC, version, flags, size_bytes)


def parse_preamble(buffer: Any, max_bytes: int = MAX_FRAME_BYTES) -> Announced:
    """Return size and flags; raises `WireError` for strangers, other versions, large frames."""
    magic, version, flags, size_bytes = _PREAMBLE.unpack_from(buffer)
    if magic != MAGIC:
        raise StrangerError(f"The peer does not speak psrt: it began with {bytes(magic)!r}.")
    check_version(version)
    check_size(size_bytes, max_bytes)
    return Announced(size_bytes, flags)


def check_version(theirs: int) -> None:
    if theirs != PROTOCOL:
        raise WireError(
            f"The peer speaks protocol version {theirs}, this side speaks {PROTOCOL}.",
            code=ErrorCode.WIRE_VERSION,
            hint="Install the same psrt release on trainers and pservers.",
        )


def check_size(size_bytes: int, max_bytes: int) -> None:
    if size_bytes > max_bytes:
        raise too_large(size_bytes, max_bytes)


def too_large(size_bytes: int, max_bytes: int) -> WireError:
    return WireError(
        f"A message of {size_bytes} bytes was refused; the limit is {max_bytes}.",
        code=ErrorCode.WIRE_TOO_LARGE,
        hint="Send smaller blocks, or raise max_message_mib of the pserver.",
    )


def no_memory(what: str) -> WireError:
    return WireError(
        f"There is no memory for {what}.",
        code=ErrorCode.WIRE_TOO_LARGE,
        hint="Give the process more memory, or send smaller blocks to more pservers.",
    )


def truncated(got: str, announced: str) -> WireError:
    message = f"A frame ended early: {got} arrived, {announced} were announced."
    return WireError(message, code=ErrorCode.WIRE_TRUNCATED)
