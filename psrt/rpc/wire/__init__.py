"""wire: messages and their bytes on every carrier.

preamble      the 16 bytes before each frame on the stream carrier, and limits on frames
buffers       64-byte aligned receive buffers, grown on demand and reused when free
codes         numbers of the protocol: kinds of parts, and dtypes of tensors
header_limits  limits of a header, checked before anything is built from it
frames        messages as frames and back: docs/reference/wire-format.md in code
pieces        a large message split over several frames and joined again (gRPC only)
receive_into  large tensors received straight into arrays that the caller named
"""

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
    parse,
)
from psrt.rpc.wire.header_limits import GREETING_BYTES
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
from psrt.rpc.wire.receive_into import receive_into, skip_bytes

__all__ = [
    "ALIGNMENT",
    "GREETING_BYTES",
    "MAX_FRAME_BYTES",
    "PREAMBLE_BYTES",
    "PRECISION_CODES",
    "PROTOCOL",
]
__all__ += ["PULL_CHANGED", "PULL_DENSE", "PULL_ROWS", "PUSH_DENSE", "PUSH_ROWS", "SPLIT_BYTES"]
__all__ += ["Buffer", "Empty", "Joiner", "Message", "ReceiveBuffers", "StrangerError", "aligned"]
__all__ += ["aligned_empty", "check_size", "check_version", "decode", "decode_apart", "empty"]
__all__ += [
    "encode",
    "encode_apart",
    "is_unreferenced",
    "no_memory",
    "parse",
    "parse_preamble",
    "preamble",
]
__all__ += ["receive_into", "room_for", "skip_bytes", "split", "too_large", "truncated"]
