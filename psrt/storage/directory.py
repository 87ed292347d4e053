"""The protocol of a directory of files with durable commits.

Names are relative paths, parts of which are separated by `/`. A file is visible under its name only
when it is complete and durable; writing a name again replaces the file at once. One process writes
a name at a time; any number reads.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from psrt.storage.checksums import Buffer
from psrt.storage.failures import damaged

UNFINISHED = ".tmp"
"""End of the names of files that are being written."""

MAX_SMALL_BYTES = 64 << 20


class AppendWriter(Protocol):
    """A file that is being written."""

    def write(self, *buffers: Buffer) -> None:
        """Append buffers; raises `StorageError` naming the file."""
        ...


class RangeReader(Protocol):
    """A complete file. Several threads may read it at the same time."""

    name: str
    size_bytes: int

    def read(self, offset: int, size_bytes: int) -> memoryview:
        """Return exactly these bytes, read-only; raises `StorageError` naming the file."""
        ...

    def read_ahead(self, offset: int, size_bytes: int) -> None:
        """Announce a read of these bytes; returns at once, and fails never."""
        ...


class Directory(Protocol):
    """Files by name. All errors are `StorageError`s that name the file."""

    location: str

    def write(self, name: str) -> AbstractContextManager[AppendWriter]:
        """Write a file, which is durable and visible once the block has ended without an error.

        After an error an earlier file of this name is unchanged. Only if the very last step fails,
        which makes the name durable, the new one may be in place.
        """
        ...

    def read(self, name: str) -> AbstractContextManager[RangeReader]:
        """Open a file; raises `StorageError` FILE_MISSING if there is none."""
        ...

    def commit(self, name: str, data: bytes) -> None:
        """Put a small file in place at once: a crash leaves the earlier one or this one."""
        ...

    def names(self, prefix: str = "") -> list[str]:
        """Return the names of complete files that begin with `prefix`, sorted."""
        ...

    def remove(self, *names: str) -> None:
        """Delete files, durably; those that do not exist are ignored."""
        ...

    def remove_unfinished(self) -> list[str]:
        """Delete what broken writers left; no other process may be writing here."""
        ...


def check_name(name: str) -> None:
    """Raise `ValueError` for what is not the name of a file inside the directory."""
    parts = name.split("/")
    if not all(parts) or {".", ".."} & set(parts) or "\0" in name or name.endswith(UNFINISHED):
        raise ValueError(f"not a name of a stored file: {name!r}")


def contents(directory: Directory, name: str, limit_bytes: int = MAX_SMALL_BYTES) -> bytes:
    """Return a whole small file; a larger one than `limit_bytes` is an error."""
    with directory.read(name) as file:
        if file.size_bytes > limit_bytes:
            raise damaged(file.name, f"it is {file.size_bytes} bytes long, not {limit_bytes}")
        return bytes(file.read(0, file.size_bytes))
