"""Ends of Arrow IPC streams and files, which pyarrow does not check.

pyarrow takes the end of the bytes for that of a stream and reads nothing behind the first stream.
Of concatenated files it reads the first by the footer of the last. Errors here are `OSError`s
without the name of the file.
"""

from __future__ import annotations

import io
from struct import error as NotThere
from struct import unpack_from
from typing import IO

_STREAM_END = bytes(4)
"""End of every stream; since version 0.15 four bytes precede it."""
_TRAILER_BYTES = 10
_PADDING_BYTES = 64
_RECORD_BATCHES = 3
"""The field of a footer that lists record batches as blocks."""
_BLOCK_BYTES = 24


def behind_stream(file: IO[bytes], at: int) -> int:
    """Return the start of a next stream, behind one whose last record batch ended `at`; raises
    `OSError` without an end marker."""
    end = file.tell()
    file.seek(max(at, end - len(_STREAM_END)))
    if file.read(len(_STREAM_END)) != _STREAM_END:
        raise OSError("a stream has no end marker behind its last record batch")
    return end


def check_file(file: IO[bytes]) -> None:
    """Raise `OSError` for a file with more before its footer than the footer lists."""
    stop = file.seek(-_TRAILER_BYTES, io.SEEK_END)
    start = stop - int(unpack_from("<i", file.read(_TRAILER_BYTES))[0])
    file.seek(start)
    try:
        end = _batches_end(file.read(stop - start))
    except NotThere:
        raise OSError("the footer is damaged") from None
    if end is not None and not end <= start <= end + _PADDING_BYTES:
        raise OSError(f"its batches end at byte {end:,}, but its footer begins at {start:,}")


def _batches_end(footer: bytes) -> int | None:
    """Return the byte behind the last record batch of a flatbuffer; None if it lists none."""
    (root,) = unpack_from("<I", footer)
    table = root - unpack_from("<i", footer, root)[0]
    (table_bytes,) = unpack_from("<H", footer, table)
    at = 4 + 2 * _RECORD_BATCHES
    (field,) = unpack_from("<H", footer, table + at) if at < table_bytes else (0,)
    if not field:
        return None
    blocks = root + field + unpack_from("<I", footer, root + field)[0]
    (count,) = unpack_from("<I", footer, blocks)
    starts = (blocks + 4 + _BLOCK_BYTES * number for number in range(count))
    return max((_block_end(footer, start) for start in starts), default=None)


def _block_end(footer: bytes, start: int) -> int:
    offset, head_bytes, body_bytes = unpack_from("<qi4xq", footer, start)
    return int(offset + head_bytes + body_bytes)
