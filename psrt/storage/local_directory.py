"""A directory on a disk: files appear by rename, after their contents are synced.

A file is written as `NAME.<owner>.tmp`, synced, renamed to NAME, and the directory is synced. After
a failed sync the file is given up, never synced again: the kernel reports the loss of data once.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from psrt.core.errors import StorageError
from psrt.core.failpoints import reach
from psrt.storage.checksums import Buffer
from psrt.storage.directory import UNFINISHED, check_name
from psrt.storage.disk import Disk, DiskFile, RealDisk
from psrt.storage.failures import damaged, reported


class LocalDirectory:
    """Files below `path`, which is made when it is first written to. Threads may share it.

    `owner` is part of the names of unfinished files, by default the number of the process.
    """

    def __init__(self, path: Path, disk: Disk | None = None, owner: str = "") -> None:
        self._root = Path(os.path.abspath(path))
        self._disk = disk if disk is not None else RealDisk()
        self._owner = owner or str(os.getpid())
        self._made: set[Path] = set()
        self.location = str(path)

    @contextmanager
    def write(self, name: str) -> Iterator[LocalWriter]:
        path = self._path(name)
        with reported(str(path), "write"):
            unfinished, file = self._create(path)
        try:
            writer = LocalWriter(str(path), file)
            yield writer
            with reported(str(path), "write"):
                writer.finish()
                reach("file.before_rename")
                self._disk.rename(unfinished, path)
        except BaseException:
            self._give_up(unfinished, file)
            raise
        with reported(str(path), "write"):
            self._disk.sync_directory(path.parent)

    @contextmanager
    def read(self, name: str) -> Iterator[LocalReader]:
        path = self._path(name)
        with reported(str(path), "read"):
            file = self._disk.open(path)
        try:
            with reported(str(path), "read"):
                reader = LocalReader(str(path), file, file.size_bytes())
            yield reader
        finally:
            file.close()

    def commit(self, name: str, data: bytes) -> None:
        with self.write(name) as out:
            out.write(data)

    def names(self, prefix: str = "") -> list[str]:
        with reported(self.location, "list"):
            found = self._disk.files(self._root)
        names = (path.relative_to(self._root).as_posix() for path in found)
        return sorted(n for n in names if n.startswith(prefix) and not n.endswith(UNFINISHED))

    def remove(self, *names: str) -> None:
        self._remove([self._path(name) for name in names])

    def remove_unfinished(self) -> list[str]:
        with reported(self.location, "list"):
            found = [p for p in self._disk.files(self._root) if p.name.endswith(UNFINISHED)]
        self._remove(found)
        return sorted(path.relative_to(self._root).as_posix() for path in found)

    def _path(self, name: str) -> Path:
        check_name(name)
        return self._root / name

    def _create(self, path: Path) -> tuple[Path, DiskFile]:
        """Open a temporary file, in a directory that is durable."""
        try:
            self._make(path.parent)
            return self._new_file(path)
        except FileNotFoundError:  # another process has removed it because it was empty
            self._made.clear()
            self._make(path.parent)
            return self._new_file(path)

    def _make(self, folder: Path) -> None:
        """Make a directory and its parents, durably.

        What exists below the root is synced, too: its maker may have ended before it did that.
        """
        if folder in self._made:
            return
        if not self._make_one(folder) and folder in self._root.parents:
            return
        if self._root in folder.parents:
            self._make(folder.parent)
        self._disk.sync_directory(folder.parent)
        self._made.add(folder)

    def _make_one(self, folder: Path) -> bool:
        """Make a directory, and its parents if they lack; returns False if it was there."""
        try:
            self._disk.make_directory(folder)
        except FileExistsError:
            return False
        except FileNotFoundError:
            self._make(folder.parent)
            return self._make_one(folder)
        return True

    def _new_file(self, path: Path) -> tuple[Path, DiskFile]:
        """Open a temporary file of a name that nobody has."""
        for number in itertools.count():
            unfinished = path.with_name(f"{path.name}.{self._owner}-{number}{UNFINISHED}")
            with suppress(FileExistsError):
                return unfinished, self._disk.create(unfinished)
        raise AssertionError("unreachable")

    def _give_up(self, unfinished: Path, file: DiskFile) -> None:
        with suppress(OSError):
            file.close()
        with suppress(OSError):
            self._disk.remove(unfinished)

    def _remove(self, paths: list[Path]) -> None:
        for path in paths:
            with reported(str(path), "remove"), suppress(FileNotFoundError):
                self._disk.remove(path)
        for folder in sorted({p.parent for p in paths}, key=lambda p: (-len(p.parts), p)):
            with reported(str(folder), "sync"), suppress(FileNotFoundError):
                self._disk.sync_directory(folder)
            self._remove_empty(folder)

    def _remove_empty(self, folder: Path) -> None:
        """Remove a directory and its parents as far as they are empty; the root stays."""
        while self._root in folder.parents:
            try:
                self._disk.remove_directory(folder)
            except OSError:
                return
            self._made.discard(folder)
            folder = folder.parent


class LocalWriter:
    """Appends to a temporary file; after an error it cannot be finished."""

    def __init__(self, name: str, file: DiskFile) -> None:
        self._name, self._file = name, file
        self._failed: StorageError | None = None

    def write(self, *buffers: Buffer) -> None:
        try:
            with reported(self._name, "write"):
                self._file.append(buffers)
        except StorageError as error:
            self._failed = error
            raise

    def finish(self) -> None:
        """Sync the contents; some file systems report errors on close only."""
        if self._failed is not None:
            raise self._failed.again()
        self._file.sync()
        self._file.close()


class LocalReader:
    """Reads ranges of an open file, each into memory of its own."""

    def __init__(self, name: str, file: DiskFile, size_bytes: int) -> None:
        self.name, self._file, self.size_bytes = name, file, size_bytes

    def read(self, offset: int, size_bytes: int) -> memoryview:
        if offset + size_bytes > self.size_bytes:
            raise damaged(self.name, f"it ends at byte {self.size_bytes}")
        data = np.empty(size_bytes, np.uint8).data
        with reported(self.name, "read"):
            count = self._file.read_into(data, offset)
        if count < size_bytes:
            raise damaged(self.name, f"it ends at byte {offset + count}")
        return data.toreadonly()

    def read_ahead(self, offset: int, size_bytes: int) -> None:
        with suppress(OSError):
            self._file.read_ahead(offset, size_bytes)
