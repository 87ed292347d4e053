"""Bytes of a file, a URL or the standard input, as stored and decompressed.

Gzip and zstd are recognised by their first bytes, not by their name. A file that is truncated,
damaged or written meanwhile never passes for a whole one: it raises a `DataError` that names it.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import IO, Any, cast

from psrt.core.errors import DataError
from psrt.core.urls import is_url
from psrt.data.sources.compressed import (
    GZIP_ERRORS,
    GZIP_MAGIC,
    ZSTD_MAGIC,
    GzipText,
    OwningText,
    ZstdText,
    begins_zstd,
    cut_off,
    damaged,
)
from psrt.data.sources.places import DataFile
from psrt.data.sources.remote import open_url, unreadable
from psrt.data.sources.text_ahead import TextAhead

STDIN = "<stdin>"
"""Name of the standard input; it is read once, to its end."""

_AHEAD_BYTES = 1 << 20


def open_text(path: Path | str) -> IO[bytes]:
    """Open the decompressed bytes of a file; a plain file of this host is an `io.FileIO`."""
    file = open_raw(path)
    try:
        start = _first_bytes(file)
        if start.startswith(GZIP_MAGIC):
            return _ahead(GzipText(unchanging(file, path)), path)
        if begins_zstd(start):
            return _ahead(ZstdText(unchanging(file, path), path), path)
    except BaseException as error:
        file.close()
        if isinstance(error, OSError):
            raise unreadable(path, error) from error
        raise
    return file


def _ahead(text: io.RawIOBase, path: Path | str) -> IO[bytes]:
    """Decompress text while the lines before it are parsed."""
    return cast("IO[bytes]", io.BufferedReader(TextAhead(text, str(path)), _AHEAD_BYTES))


def _standard_input() -> IO[bytes]:
    try:
        return cast("IO[bytes]", open(0, "rb", closefd=False))
    except OSError as error:
        raise unreadable(STDIN, error) from error


def open_raw(path: Path | str) -> IO[bytes]:
    """Open the bytes of a file as stored: seekable unless they come through a pipe."""
    if path == STDIN:
        return _standard_input()
    if is_url(path):
        return open_url(str(path))
    try:
        file = open(path, "rb", buffering=0)  # noqa: SIM115 (the caller closes it)
        return cast("IO[bytes]", file if file.seekable() else io.BufferedReader(file))
    except OSError as error:
        raise unreadable(path, error) from error


def _first_bytes(file: IO[bytes]) -> bytes:
    """Return enough bytes to recognise a compression; those of a pipe or URL stay buffered."""
    if isinstance(file, io.BufferedReader):
        return file.peek(len(ZSTD_MAGIC))
    start = file.read(len(ZSTD_MAGIC))
    file.seek(0)
    return start


def read_some(file: IO[bytes], into: memoryview, path: DataFile) -> int:
    """Read bytes of an open file, 0 at its end; raises `DataError` if it is damaged."""
    try:
        return cast("int", file.readinto(into))  # type: ignore[attr-defined]
    except EOFError as error:
        raise cut_off(path, "gzip") from error
    except GZIP_ERRORS as error:
        raise damaged(path, "gzip", error) from error
    except DataError:
        raise
    except Exception as error:
        if isinstance(error, OSError) or is_url(path):
            raise unreadable(path, error) from error
        raise


class Stamp:
    """Size and modification time of a plain file when this was made; zeros for other files."""

    def __init__(self, file: IO[bytes], path: DataFile) -> None:
        self._file, self._path = file, path
        self._before = self._now()

    @property
    def size_bytes(self) -> int:
        """The size of the file when this was made."""
        return self._before[0]

    def check(self) -> None:
        """Raise `DataError` if the file was written: the bytes read may mix two versions."""
        after = self._now()
        if after != self._before:
            raise DataError(
                f"{self._path}: the file was changed while it was read: it had "
                f"{self._before[0]:,} bytes, and has {after[0]:,}. Reading stopped.",
                hint="Write files under another name and rename them when they are whole.",
            )

    def _now(self) -> tuple[int, int]:
        if not _is_plain(self._file):
            return 0, 0
        found = os.fstat(self._file.fileno())
        return found.st_size, found.st_mtime_ns


def unchanging(file: IO[bytes], path: DataFile) -> IO[bytes]:
    """Return a file that raises `DataError` at its end, or behind the end that it had when it was
    opened, if it was changed on this host."""
    return cast("IO[bytes]", _Unchanging(file, path)) if _is_plain(file) else file


def _is_plain(file: IO[bytes]) -> bool:
    return isinstance(file, io.FileIO) and file.seekable()


class _Unchanging(OwningText):
    def __init__(self, file: IO[bytes], path: DataFile) -> None:
        super().__init__(file)
        self._path, self._stamp = path, Stamp(file, path)

    def readinto(self, into: Any) -> int:
        got = read_some(self._stored, memoryview(into), self._path)
        if not got or self._stored.tell() > self._stamp.size_bytes:
            self._stamp.check()
        return got
