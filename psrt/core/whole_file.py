"""Atomic files: at every moment the file at a path is complete or absent.

A file is written under a temporary name in its directory, synced to the disk and renamed. Then the
directory is synced, so the rename survives a power failure. Symbolic links are resolved first. A
device, a pipe, or the file that is this process's own output is written in place and not synced.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from psrt.core.errors import ConfigError

_OUTPUTS = (1, 2)  # stdout and stderr


def write(path: Path, text: str, *, is_private: bool = False) -> None:
    """Put `text` at `path`, all of it or, if that fails with an `OSError`, nothing.

    Nobody else may read a private file, at any moment. The sync of the directory comes last: if it
    raises, the file is in place.
    """
    with writing(path, is_private=is_private) as out:
        out.write(text)


@contextmanager
def writing(path: Path, *, is_private: bool = False) -> Iterator[TextIO]:
    """Open a file that is at `path`, and on the disk, once the block ends without an error."""
    if not _may_be_replaced(path):
        with path.open("a", encoding="utf-8") as out:
            yield out
        return
    place, unfinished = _target_and_temporary(path)
    try:
        opener = _private if is_private else None
        with open(unfinished, "w", encoding="utf-8", opener=opener) as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        unfinished.replace(place)
    finally:
        unfinished.unlink(missing_ok=True)
    sync_directory(place.parent)


def probe(path: Path) -> None:
    """Raise the `OSError` that `write` would raise, as far as it can be predicted.

    Pipes are not opened: that would wait for a reader.
    """
    if not _may_be_replaced(path):
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return
    _, unfinished = _target_and_temporary(path)
    unfinished.touch()
    unfinished.unlink()


def remove(path: Path) -> None:
    """Delete the file that `write` made; devices and pipes stay."""
    if _may_be_replaced(path):
        _target_and_temporary(path)[0].unlink(missing_ok=True)


def unwritable(path: str, flag: str, error: OSError) -> ConfigError:
    """Return the error for a user whose `flag` names `path`, where `write` raised `error`."""
    return ConfigError(
        f"{flag} {path} cannot be written ({error.strerror}).",
        hint=f"Give {flag} a file in a directory that exists and may be written.",
    )


def sync_directory(directory: Path) -> None:
    """Sync the names in `directory` to the disk, where permissions and file system allow it."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:  # files may be made in it, and it cannot be opened
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _may_be_replaced(path: Path) -> bool:
    """True if the path is a regular file or absent; raises `IsADirectoryError`."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return True
    if stat.S_ISDIR(there.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return stat.S_ISREG(there.st_mode) and not any(_is_open_as(n, there) for n in _OUTPUTS)


def _is_open_as(descriptor: int, there: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), there)
    except OSError:  # the process has none
        return False


def _target_and_temporary(path: Path) -> tuple[Path, Path]:
    """The file that `path` resolves to, and a temporary name of this process alongside it."""
    place = Path(os.path.realpath(path))
    return place, place.with_name(f"{place.name}.{os.getpid()}.tmp")
