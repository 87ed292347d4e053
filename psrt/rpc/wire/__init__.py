"""wire: files in reading order.

preamble      The 16 bytes before each frame on the stream carrier, and the checks every
              carrier makes first
buffers       Memory that frames are received into: 64-byte aligned, grown on demand, reused
              when free
codes         Numbers of the protocol: kinds of parts, and dtypes of tensors
frames        Messages and their bytes: docs/wire-format.md in code
pieces        Splitting a large message over several frames, and joining them again (gRPC only)
receive_into  Where the bytes of a frame go that is still being received
"""

from __future__ import annotations

from psrt.rpc.wire.buffers import (
    ALIGNMENT,
    ReceiveBuffers,
    aligned,
    aligned_empty,
    is_unreferenced,
    room_for,
)
from psrt.rpc.wire.codes import (
    PRECISION_CODES,
    PULL_CHANGED,
    PULL_DENSE,
    PULL_ROWS,
    PUSH_DENSE,
    PUSH_ROWS,
)
from psrt.rpc.wire.frames import (
    Buffer,
    Empty,
    Message,
    decode,
    decode_apart,
    empty,
    encode,
    encode_apart,
)
from psrt.rpc.wire.pieces import SPLIT_BYTES, Joiner, split
from psrt.rpc.wire.preamble import (
    MAX_FRAME_BYTES,
    PREAMBLE_BYTES,
    PROTOCOL,
    StrangerError,
    check_size,
    check_version,
    no_memory,
    parse_preamble,
    preamble,
    too_large,
    truncated,
)
from psrt.rpc.wire.receive_into import receive_into, without

__all__ = [
    "ALIGNMENT",
    "MAX_FRAME_BYTES",
    "PREAMBLE_BYTES",
    "PRECISION_CODES",
    "PROTOCOL",
    "PULL_CHANGED",
    "PULL_DENSE",
    "PULL_ROWS",
    "PUSH_DENSE",
    "PUSH_ROWS",
    "SPLIT_BYTES",
    "Buffer",
    "Empty",
    "Joiner",
    "Message",
    "ReceiveBuffers",
    "StrangerError",
    "aligned",
    "aligned_empty",
    "check_size",
    "check_version",
    "decode",
    "decode_apart",
    "empty",
    "encode",
    "encode_apart",
    "is_unreferenced",
    "no_memory",
    "parse_preamble",
    "preamble",
    "receive_into",
    "room_for",
    "split",
    "too_large",
    "truncated",
    "without",
]
