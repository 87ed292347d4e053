"""The bytes of a file, a URL or the standard input: as they are stored, and decompressed.

Gzip and zstd are recognised by their first bytes, not by their name. Nothing that is cut off or
damaged passes for a whole file: every failure is a `DataError` that names the file.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import IO, cast

from psrt.core.errors import DataError
from psrt.data.compressed import (
    GZIP_ERRORS,
    GZIP_MAGIC,
    ZSTD_MAGIC,
    GzipText,
    ZstdText,
    cut_off,
    damaged,
)
from psrt.data.places import DataFile
from psrt.data.remote import is_url, open_url, unreadable
from psrt.data.text_ahead import TextAhead

STDIN = "<stdin>"
"""Stands for the standard input where a file is named; it is read once, to its end."""

_AHEAD_BYTES = 1 << 20


def open_text(path: Path | str) -> IO[bytes]:
    """The bytes of a file, decompressed; a plain file of this host is an `io.FileIO`."""
    file = open_stored(path)
    try:
        start = _first_bytes(file)
        if start.startswith(GZIP_MAGIC):
            return _ahead(GzipText(file), path)
        if start.startswith(ZSTD_MAGIC):
            return _ahead(ZstdText(file, path), path)
    except BaseException as error:
        file.close()
        if isinstance(error, OSError):
            raise unreadable(path, error) from error
        raise
    return file


def _ahead(text: io.RawIOBase, path: Path | str) -> IO[bytes]:
    """A text that is decompressed while the lines before are parsed."""
    return cast("IO[bytes]", io.BufferedReader(TextAhead(text, str(path)), _AHEAD_BYTES))


def open_stored(path: Path | str) -> IO[bytes]:
    """The bytes of a file as they are stored: seekable unless they come through a pipe."""
    if path == STDIN:
        return cast("IO[bytes]", open(0, "rb", closefd=False))
    if is_url(path):
        return open_url(str(path))
    try:
        file = open(path, "rb", buffering=0)  # noqa: SIM115 (the caller closes it)
        return cast("IO[bytes]", file if file.seekable() else io.BufferedReader(file))
    except OSError as error:
        raise unreadable(path, error) from error


def _first_bytes(file: IO[bytes]) -> bytes:
    """Enough to tell a compression; a pipe or URL cannot go back, so they stay in its buffer."""
    if isinstance(file, io.BufferedReader):
        return file.peek(len(ZSTD_MAGIC))
    start = file.read(len(ZSTD_MAGIC))
    file.seek(0)
    return start


def read_some(file: IO[bytes], into: memoryview, path: DataFile) -> int:
    """Bytes of an open file, 0 at its end; raises `DataError` where it is damaged."""
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
