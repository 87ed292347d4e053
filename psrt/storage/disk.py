"""The operations of a local disk that durable files need, and nothing else.

`LocalDirectory` calls them through the protocol `Disk`; tests put a simulated disk in its place,
which forgets what was not synced. Every operation raises `OSError`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from psrt.core import whole_file
from psrt.storage.checksums import Buffer

_CLOSED = -1
_MOST_BUFFERS = 512  # of one writev; the limit of Linux is 1,024
_WRITE_BACK_BYTES = 8 << 20


class DiskFile(Protocol):
    """An open file, for appending or for reading."""

    def append(self, buffers: Sequence[Buffer]) -> None: ...
    def sync(self) -> None:
        """Make its contents durable; after an error they may be lost, whatever comes later."""
        ...

    def size_bytes(self) -> int: ...
    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fill `buffer` from byte `offset` on; returns how much was there."""
        ...

    def read_ahead(self, offset: int, size_bytes: int) -> None:
        """Begin to read these bytes into the cache of the disk, without waiting."""
        ...

    def close(self) -> None:
        """Close it; a second call does nothing."""
        ...


class Disk(Protocol):
    """A file system; paths are absolute."""

    def create(self, path: Path) -> DiskFile:
        """Open a new file for appending; raises `FileExistsError`."""
        ...

    def open(self, path: Path) -> DiskFile:
        """Open a file for reading."""
        ...

    def rename(self, old: Path, new: Path) -> None: ...
    def remove(self, path: Path) -> None: ...
    def make_directory(self, path: Path) -> None: ...
    def remove_directory(self, path: Path) -> None: ...
    def sync_directory(self, path: Path) -> None:
        """Make the names in a directory durable."""
        ...

    def files(self, path: Path) -> list[Path]:
        """Return all files below a directory; none if it does not exist."""
        ...


class RealFile:
    """A descriptor.

    Linux keeps appended bytes in memory until they are old or many, so the sync of a large file
    would wait for all of them. Advice that they are not needed begins to write them at once, and
    the disk works while the next ones are computed: cuts are written a quarter faster.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._appended_bytes = 0
        self._begun_bytes = 0

    def append(self, buffers: Sequence[Buffer]) -> None:
        views = [memoryview(buffer).cast("B") for buffer in buffers if len(buffer)]
        while views:
            written = os.writev(self._descriptor, views[:_MOST_BUFFERS])
            views = _rest(views, written)
            self._appended_bytes += written
        if self._appended_bytes - self._begun_bytes >= _WRITE_BACK_BYTES:
            self._begin_write_back()

    def sync(self) -> None:
        os.fsync(self._descriptor)

    def size_bytes(self) -> int:
        return os.fstat(self._descriptor).st_size

    def read_into(self, buffer: memoryview, offset: int) -> int:
        done = 0
        while done < len(buffer):
            count = os.preadv(self._descriptor, [buffer[done:]], offset + done)
            if not count:
                break
            done += count
        return done

    def read_ahead(self, offset: int, size_bytes: int) -> None:
        os.posix_fadvise(self._descriptor, offset, size_bytes, os.POSIX_FADV_WILLNEED)

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, _CLOSED
        if descriptor != _CLOSED:
            os.close(descriptor)

    def _begin_write_back(self) -> None:
        start, self._begun_bytes = self._begun_bytes, self._appended_bytes
        with suppress(OSError):  # advice, which some file systems refuse
            os.posix_fadvise(
                self._descriptor, start, self._appended_bytes - start, os.POSIX_FADV_DONTNEED
            )


class RealDisk:
    """The file systems of this host."""

    def create(self, path: Path) -> RealFile:
        return RealFile(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))

    def open(self, path: Path) -> RealFile:
        return RealFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def rename(self, old: Path, new: Path) -> None:
        os.replace(old, new)

    def remove(self, path: Path) -> None:
        os.unlink(path)

    def make_directory(self, path: Path) -> None:
        os.mkdir(path)

    def remove_directory(self, path: Path) -> None:
        os.rmdir(path)

    def sync_directory(self, path: Path) -> None:
        whole_file.sync_directory(path)

    def files(self, path: Path) -> list[Path]:
        walk = os.walk(path, onerror=_raise_unless_missing)
        return [Path(folder, name) for folder, _, names in walk for name in names]


def _rest(views: list[memoryview], written: int) -> list[memoryview]:
    """Return what is left of buffers of which `written` bytes are done."""
    for number, view in enumerate(views):
        if written < len(view):
            return [view[written:], *views[number + 1 :]]
        written -= len(view)
    return []


def _raise_unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
