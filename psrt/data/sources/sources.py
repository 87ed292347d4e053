"""Text of a file, a URL or the standard input, decompressed, in blocks of lines.

Reader threads ask a `TextSource` for blocks, usually `Files`, from the start of a file or from an
earlier position. Reading and decompression run without the GIL. A file that shrank, or changes
while it is read, raises a `DataError` that names it.
"""

from __future__ import annotations

import io
from collections.abc import Generator
from typing import IO, Any, Protocol, TypeAlias, cast

import numpy as np

from psrt.core.errors import DataError
from psrt.core.types import U8
from psrt.data.sources.places import DataFile, FilePart
from psrt.data.sources.raw_bytes import open_text, read_some, unchanging

Blocks: TypeAlias = Generator[U8, None, None]

BLOCK_BYTES = 4 << 20
MAX_LINE_BYTES = 256 << 20


class TextSource(Protocol):
    """A source of text of files; several threads may call `blocks`."""

    def name(self, path: DataFile) -> str:
        """Return the name of a file's text in messages."""
        ...

    def blocks(self, path: DataFile, start: int = 0) -> Blocks:
        """Yield the text of a file from a line start on, see `cut`."""
        ...

    def stop(self) -> None:
        """Release threads that wait in `blocks`; they need no further text."""
        ...


class Files:
    """Files and URLs, decompressed."""

    def name(self, path: DataFile) -> str:
        return str(path)

    def blocks(self, path: DataFile, start: int = 0) -> Blocks:
        return blocks(path, start=start)

    def stop(self) -> None:
        """Do nothing: a read of a file ends by itself."""


def blocks(path: DataFile, block_bytes: int = BLOCK_BYTES, start: int = 0) -> Blocks:
    """Yield the text of a file (plain, gzip or zstd), of a part of one, of a URL or of `STDIN`.

    `start` counts bytes of the decompressed file, also in a part; a plain file seeks there, any
    other is read up to there. Raises `DataError` if there is less text.
    """
    if isinstance(path, FilePart):
        with open_text(path.path) as whole:
            start = max(start, path.start)
            skip(whole, start, path)
            text = cast("IO[bytes]", _FirstBytes(whole, path.stop - start, path))
            yield from cut(text, path, block_bytes)
    else:
        with open_text(path) as file:
            skip(file, start, path)
            yield from cut(unchanging(file, path), path, block_bytes)


def skip(file: IO[bytes], size_bytes: int, path: DataFile) -> None:
    """Skip the first bytes of an open text; raises `DataError` if it has fewer."""
    missing = size_bytes
    if isinstance(file, io.FileIO) and file.seekable():
        missing -= min(file.seek(0, io.SEEK_END), size_bytes)
        file.seek(size_bytes)
    scratch = memoryview(bytearray(min(missing, BLOCK_BYTES)))
    while missing and (got := read_some(file, scratch[:missing], path)):
        missing -= got
    if missing:
        raise DataError(
            f"{path}: reading was to go on behind {size_bytes} bytes of text, but there are "
            f"{size_bytes - missing}.",
            hint="Did the file change since the position was saved?",
        )


def cut(file: IO[bytes], path: DataFile, block_bytes: int = BLOCK_BYTES) -> Blocks:
    """Yield the text of an open file as arrays (n,) uint8 of whole lines, ending in a newline.

    An array is a window on a buffer that the next step overwrites. Lines may be longer than a
    block, up to `MAX_LINE_BYTES`; the last line need not end in a newline.
    """
    buffer = bytearray(block_bytes)
    held = 0
    # One byte stays free for the newline a file may lack at its end.
    while got := read_some(file, memoryview(buffer)[held:-1], path):
        filled = held + got
        end = buffer.rfind(b"\n", 0, filled) + 1
        if end:
            yield np.frombuffer(buffer, np.uint8, end)
            buffer[: filled - end] = buffer[end:filled]
        elif filled == len(buffer) - 1:
            buffer = _larger(buffer, path)
        held = filled - end
    if held:
        buffer[held] = ord("\n")
        yield np.frombuffer(buffer, np.uint8, held + 1)


class _FirstBytes(io.RawIOBase):
    """The next `size_bytes` bytes of a file; raises `DataError` if it has fewer."""

    def __init__(self, file: IO[bytes], size_bytes: int, path: DataFile) -> None:
        self._file, self._left, self._path = file, size_bytes, path

    def readinto(self, into: Any) -> int:
        got = read_some(self._file, memoryview(into)[: self._left], self._path)
        if self._left and not got:
            raise DataError(
                f"{self._path}: the file ends {self._left:,} bytes before this part of it does.",
                hint="The file was changed after it was shared among the trainers.",
            )
        self._left -= got
        return got


def _larger(buffer: bytearray, path: DataFile) -> bytearray:
    if len(buffer) >= MAX_LINE_BYTES:
        raise DataError(
            f"{path}: a line is longer than {MAX_LINE_BYTES >> 20} MiB. Reading stopped.",
            hint="This is probably not a text file.",
        )
    return buffer + bytes(len(buffer))
