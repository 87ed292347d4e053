"""Which files a data set has, which of them are this trainer's, and their text in blocks of lines.

Reader threads call `blocks`; reading and decompression run without the GIL. Gzip is recognised by
its first bytes, not by its name. Every failure is a `DataError` that names the file.
"""

from __future__ import annotations

import glob
import gzip
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, cast

import numpy as np

from psrt.core.errors import ConfigError, DataError, ErrorCode
from psrt.core.types import U8

STDIN = "<stdin>"
"""Stands for the standard input where a file is named; it is read once, to its end."""

BLOCK_BYTES = 4 << 20
MAX_LINE_BYTES = 256 << 20
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_TRAILER_BYTES = 8


def expand(patterns: Iterable[str], base: Path | str = "") -> list[Path]:
    """The files that match `patterns` (names or globs, relative to `base`), each once.

    Order: that of the patterns, and sorted by name within one. A pattern without a file is refused.
    """
    found: dict[Path, None] = {}
    for pattern in patterns:
        path = Path(base) / pattern
        matches = sorted(glob.glob(str(path), recursive=True)) or [str(path)]
        found |= dict.fromkeys(Path(match) for match in matches)
    for path in found:
        _refuse_unless_file(path)
    return list(found)


def share(files: Sequence[Path], trainer_id: int, trainers: int) -> list[Path]:
    """The files of one trainer: file i belongs to trainer i mod `trainers`."""
    if not 0 <= trainer_id < trainers:
        raise ConfigError(f"trainer id {trainer_id} is not one of 0 … {trainers - 1}")
    if len(files) < trainers:
        raise DataError(
            f"{len(files)} data files cannot be shared by {trainers} trainers: "
            f"trainers {len(files)} … {trainers - 1} would have none.",
            code=ErrorCode.DATA_MISSING,
            hint="Split the data into more files (psrt data … --files N) or use fewer trainers.",
        )
    return list(files[trainer_id::trainers])


def text_bytes(path: Path) -> int:
    """About how much text a file holds, for progress bars (gzip tells it modulo 4 GiB)."""
    try:
        with open(path, "rb") as file:
            zipped = file.read(2) == _GZIP_MAGIC
            size = file.seek(0, os.SEEK_END)
            if not zipped or size < _GZIP_TRAILER_BYTES:
                return size
            file.seek(-4, os.SEEK_END)
            return int.from_bytes(file.read(4), "little")
    except OSError as error:
        raise _unreadable(path, error) from error


def blocks(path: Path | str, block_bytes: int = BLOCK_BYTES) -> Iterator[U8]:
    """The text of a plain or gzip file as arrays of whole lines, each ending in a newline.

    An array is a window on a buffer that the next step overwrites. Lines longer than a block are
    fine up to `MAX_LINE_BYTES`; the last line need not end in a newline.
    """
    buffer = bytearray(block_bytes)
    held = 0
    with _open(path) as file:
        # One byte stays free for the newline a file may lack at its end.
        while got := _read(file, memoryview(buffer)[held:-1], path):
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


def _refuse_unless_file(path: Path) -> None:
    if path.is_file():
        return
    what, hint = "does not exist", "Names and globs are relative to the file that lists them."
    if path.is_dir():
        what, hint = "is a directory", f"Name its files, for example {path}/*."
    elif glob.has_magic(str(path)):
        what = "matches no file"
    raise DataError(f"data file {path} {what}.", code=ErrorCode.DATA_MISSING, hint=hint)


def _open(path: Path | str) -> IO[bytes]:
    if path == STDIN:
        return _open_stdin()
    try:
        with open(path, "rb") as start:
            zipped = start.read(2) == _GZIP_MAGIC
        return cast("IO[bytes]", gzip.open(path) if zipped else open(path, "rb", buffering=0))
    except OSError as error:
        raise _unreadable(path, error) from error


def _open_stdin() -> IO[bytes]:
    """A pipe cannot be opened twice, so its first bytes are looked at and left where they are."""
    file = open(0, "rb", closefd=False)  # noqa: SIM115 (the caller closes it)
    zipped = file.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
    return cast("IO[bytes]", gzip.open(file) if zipped else file)


def _read(file: IO[bytes], into: memoryview, path: Path | str) -> int:
    try:
        return cast("int", file.readinto(into))  # type: ignore[attr-defined]
    except EOFError as error:
        raise DataError(
            f"{path}: the gzip file is cut off before its end. Reading stopped.",
            hint="Copy or generate the file again.",
        ) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{path}: the gzip file is damaged ({error}). Reading stopped.",
            hint="Copy or generate the file again.",
        ) from error
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path | str, error: OSError) -> DataError:
    return DataError(
        f"data file {path} cannot be read: {error.strerror or error}.",
        code=ErrorCode.DATA_MISSING,
        hint="Check that it exists on this host and that this user may read it.",
    )


def _larger(buffer: bytearray, path: Path | str) -> bytearray:
    if len(buffer) >= MAX_LINE_BYTES:
        raise DataError(
            f"{path}: a line is longer than {MAX_LINE_BYTES >> 20} MiB. Reading stopped.",
            hint="This is probably not a text file.",
        )
    return buffer + bytes(len(buffer))
