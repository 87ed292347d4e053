"""A directory behind an fsspec URL: object stores, and file systems of other hosts.

Object stores show an object when its upload is complete, large ones after a multipart upload, so
files are put there under their names. Elsewhere a file is written under a temporary name and moved;
then a commit is as atomic and as durable as that storage's move.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from psrt.core.errors import StorageError
from psrt.core.urls import file_system
from psrt.storage.checksums import Buffer
from psrt.storage.directory import UNFINISHED, check_name
from psrt.storage.failures import damaged, refused, reported

OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"})
"""Protocols of storages that show an object only when it is complete."""

BLOCK_BYTES = 16 << 20
"""Bytes of a part of a multipart upload; object stores take 10,000 parts, so files of 160 GB."""


class RemoteDirectory:
    """Files below a URL. Threads may share it."""

    def __init__(self, url: str) -> None:
        self.location = url.rstrip("/")
        with reported(url, "open"):
            self._system, root = file_system(url, f"storing files at {url}")
        self._root = root.rstrip("/")
        self._puts_whole = url.partition("://")[0].lower() in OBJECT_STORES

    @contextmanager
    def write(self, name: str) -> Iterator[RemoteWriter]:
        check_name(name)
        target = f"{self._root}/{name}"
        path = target if self._puts_whole else f"{target}.{uuid.uuid4().hex}{UNFINISHED}"
        writer = self._open(self._url(name), path)
        try:
            yield writer
            writer.finish()
            if not self._puts_whole:
                with reported(self._url(name), "write"):
                    self._system.mv(path, target)
        except BaseException:
            writer.give_up()
            if not self._puts_whole:
                with suppress(Exception):
                    self._system.rm_file(path)
            raise
        self._check_size(name, target, writer.size_bytes)

    @contextmanager
    def read(self, name: str) -> Iterator[RemoteReader]:
        check_name(name)
        path = f"{self._root}/{name}"
        with reported(self._url(name), "read"):
            size = self._size(path)
        yield RemoteReader(self._url(name), self._system, path, size)

    def commit(self, name: str, data: bytes) -> None:
        if not self._puts_whole:
            with self.write(name) as out:
                out.write(data)
            return
        check_name(name)
        with reported(self._url(name), "write"):
            self._system.pipe_file(f"{self._root}/{name}", data)

    def names(self, prefix: str = "") -> list[str]:
        found = self._files()
        return [n for n in found if n.startswith(prefix) and not n.endswith(UNFINISHED)]

    def remove(self, *names: str) -> None:
        for name in names:
            check_name(name)
            self._remove(name)

    def remove_unfinished(self) -> list[str]:
        """Delete temporary files; a bucket's lifecycle rules delete broken multipart uploads."""
        found = [name for name in self._files() if name.endswith(UNFINISHED)]
        for name in found:
            self._remove(name)
        return found

    def _url(self, name: str) -> str:
        return f"{self.location}/{name}"

    def _open(self, url: str, path: str) -> RemoteWriter:
        with reported(url, "write"):
            if not self._puts_whole:
                self._system.makedirs(os.path.dirname(path), exist_ok=True)
            options = {"autocommit": False} if self._puts_whole else {}
            file = self._system.open(path, "wb", block_size=BLOCK_BYTES, **options)
        return RemoteWriter(url, file)

    def _files(self) -> list[str]:
        """Return the names of all files, read anew: others may have written some."""
        with reported(self.location, "list"):
            self._system.invalidate_cache()
            found = self._system.find(self._root) if self._system.exists(self._root) else []
        inside = self._root.lstrip("/") + "/"
        return sorted(str(path).lstrip("/").removeprefix(inside) for path in found)

    def _size(self, path: str) -> int:
        self._system.invalidate_cache()
        found = self._system.info(path)
        if found["type"] != "file":
            raise FileNotFoundError(path)
        return int(found["size"])

    def _check_size(self, name: str, path: str, expected: int) -> None:
        with reported(self._url(name), "write"):
            found = self._size(path)
        if found != expected:
            error = OSError(f"it has {found} bytes there after {expected} were written")
            raise refused(self._url(name), "write", error)

    def _remove(self, name: str) -> None:
        with reported(self._url(name), "remove"), suppress(FileNotFoundError):
            self._system.rm_file(f"{self._root}/{name}")


class RemoteWriter:
    """Appends to an upload; after an error it cannot be finished."""

    def __init__(self, name: str, file: Any) -> None:
        self._name, self._file = name, file
        self._failed: StorageError | None = None
        self.size_bytes = 0

    def write(self, *buffers: Buffer) -> None:
        try:
            with reported(self._name, "write"):
                for buffer in buffers:
                    self._file.write(buffer)
                    self.size_bytes += len(buffer)
        except StorageError as error:
            self._failed = error
            raise

    def finish(self) -> None:
        """End the upload; an object store then shows the object."""
        if self._failed is not None:
            raise self._failed.again()
        with reported(self._name, "write"):
            self._file.close()
            if getattr(self._file, "autocommit", True) is False:
                self._file.commit()

    def give_up(self) -> None:
        """End the upload without an object; a destructor's `close` would complete it."""
        with suppress(Exception):
            self._file.discard()
        with suppress(Exception):
            self._file.closed = True


class RemoteReader:
    """Reads ranges of a remote file, each by a request of its own."""

    def __init__(self, name: str, system: Any, path: str, size_bytes: int) -> None:
        self.name, self._system, self._path, self.size_bytes = name, system, path, size_bytes

    def read(self, offset: int, size_bytes: int) -> memoryview:
        if offset + size_bytes > self.size_bytes:
            raise damaged(self.name, f"it ends at byte {self.size_bytes}")
        if size_bytes == 0:
            return memoryview(b"")
        with reported(self.name, "read"):
            data = self._system.cat_file(self._path, start=offset, end=offset + size_bytes)
        if len(data) != size_bytes:
            raise damaged(self.name, f"it ends at byte {offset + len(data)}")
        return memoryview(data).toreadonly()

    def read_ahead(self, offset: int, size_bytes: int) -> None:
        """Do nothing: a second request would bring the bytes twice."""
