"""The files of a data set, from names, globs and URLs.

A URL (`psrt.data.sources.remote`) stays a `str`, because a `Path` would drop one of its slashes.
Every failure is a `DataError` that names the file.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from psrt.core.errors import DataError, ErrorCode
from psrt.core.urls import is_url
from psrt.data.sources.compressed import GZIP_MAGIC
from psrt.data.sources.places import DataFile
from psrt.data.sources.remote import is_pattern, matches, size_bytes, unreadable

_GZIP_TRAILER_BYTES = 8
File = TypeVar("File", bound=DataFile)


def expand(patterns: Iterable[str], base: Path | str = "") -> list[Path | str]:
    """Return the files that match `patterns` (URLs, names relative to `base`, globs), once each.

    They are in the order of the patterns, sorted by name within one. Raises `DataError` for a
    pattern without a file.
    """
    found: list[Path | str] = []
    for pattern in patterns:
        found += _urls(pattern) if is_url(pattern) else _local(Path(base) / pattern)
    return once(found)


def once(files: Iterable[File]) -> list[File]:
    """Return each file by its first name: `f`, `./f` and a link to it are one; parts differ."""
    found: dict[object, File] = {}
    for file in files:
        found.setdefault(os.path.realpath(file) if isinstance(file, Path) else file, file)
    return list(found.values())


def text_bytes(path: Path | str) -> int:
    """Return roughly the bytes of text in a file, for progress bars: gzip stores them modulo 4 GiB;
    zstd and URLs count as stored."""
    if is_url(path):
        return size_bytes(str(path))
    try:
        with open(path, "rb") as file:
            zipped = file.read(2) == GZIP_MAGIC
            size = file.seek(0, os.SEEK_END)
            if not zipped or size < _GZIP_TRAILER_BYTES:
                return size
            file.seek(-4, os.SEEK_END)
            return int.from_bytes(file.read(4), "little")
    except OSError as error:
        raise unreadable(path, error) from error


def _urls(pattern: str) -> list[str]:
    found = matches(pattern)
    if not found:
        what = "matches no file" if is_pattern(pattern) else "does not exist"
        raise DataError(f"data file {pattern} {what}.", code=ErrorCode.DATA_MISSING)
    return found


def _local(path: Path) -> list[Path]:
    found = [Path(match) for match in sorted(glob.glob(str(path), recursive=True))] or [path]
    for file in found:
        try:
            _refuse_unless_file(file)
        except OSError as error:
            raise unreadable(file, error) from error
    return found


def _list(directory: Path) -> None:
    """Raise `OSError` if a glob finds nothing because the directory is not readable."""
    if not glob.has_magic(str(directory)) and directory.is_dir():
        os.scandir(directory).close()


def _refuse_unless_file(path: Path) -> None:
    if path.is_file():
        return
    what, hint = "does not exist", "Names and globs are relative to the file that lists them."
    if path.is_dir():
        what, hint = "is a directory", f"Name its files, for example {path}/*."
    elif path.exists():
        what = "is a pipe or a device"
        hint = (
            "Files are opened more than once; standard input is - for psrt predict, or else "
            '"<stdin>" for a dataset.'
        )
    elif glob.has_magic(str(path)):
        what = "matches no file"
        _list(path.parent)
    raise DataError(f"data file {path} {what}.", code=ErrorCode.DATA_MISSING, hint=hint)
