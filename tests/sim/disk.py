"""A simulated disk: a crash forgets or tears what was not synced. The same seed, the same losses.

It implements `psrt.storage.disk.Disk`. Its rules are those of POSIX, which are weaker than those of
any one file system:

- Of bytes appended since the last sync of a file, a crash keeps a prefix of any length; of the rest
  nothing, zeros or garbage.
- Of names made, renamed or removed since the last sync of their directory, a crash keeps any
  subset. A rename happens as a whole or not at all.
- After a failed sync the bytes it was to write may be lost, although later syncs succeed.

Faults: `capacity_bytes` (ENOSPC), `read_only` (EROFS), `failing_syncs` (EIO, by the number of the
sync), `crash_at` (the number of the step that ends the process; of an append a part is done).
`steps` counts operations, `history` is their readable record.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from psrt.storage.checksums import Buffer


class Crashed(BaseException):
    """The end of the process. No code of psrt may catch it, as none may catch a power failure."""


@dataclass
class Inode:
    """Contents of a file, the length that is durable, and the range that a failed sync lost."""

    data: bytearray = field(default_factory=bytearray)
    durable_bytes: int = 0
    lost: tuple[int, int] = (0, 0)


@dataclass
class NameChange:
    """A change of a directory that is not durable yet."""

    folder: Path
    apply: Callable[[Names], None]


@dataclass
class Names:
    """The tree of names, as it is now or as it is on the disk."""

    files: dict[Path, Inode] = field(default_factory=dict)
    folders: set[Path] = field(default_factory=lambda: {Path("/")})

    def reachable(self) -> Names:
        """The names that a walk from the root finds."""
        kept = {f for f in self.folders if self.folders.issuperset(f.parents)}
        return Names({p: inode for p, inode in self.files.items() if p.parent in kept}, kept)


class SimulatedDisk:
    def __init__(self, seed: int = 0, capacity_bytes: int | None = None) -> None:
        self._random = random.Random(seed)
        self._now, self._durable = Names(), Names()
        self._changes: list[NameChange] = []
        self._crashed = False
        self.capacity_bytes = capacity_bytes
        self.read_only = False
        self.failing_syncs: set[int] = set()
        self.crash_at: int | None = None
        self.steps = self.syncs = 0
        self.history: list[str] = []

    # What psrt calls.

    def create(self, path: Path) -> SimulatedFile:
        self._step(f"create {path}", changes=True)
        self._need_folder(path.parent)
        if path in self._now.files or path in self._now.folders:
            raise _error(errno.EEXIST, path)
        inode = Inode()
        self._change(path.parent, lambda names: names.files.update({path: inode}))
        return SimulatedFile(self, inode, path)

    def open(self, path: Path) -> SimulatedFile:
        self._step(f"open {path}")
        if path in self._now.folders:
            raise _error(errno.EISDIR, path)
        if path not in self._now.files:
            raise _error(errno.ENOENT, path)
        return SimulatedFile(self, self._now.files[path], path)

    def rename(self, old: Path, new: Path) -> None:
        assert old.parent == new.parent
        self._step(f"rename {old} {new.name}", changes=True)
        if old not in self._now.files:
            raise _error(errno.ENOENT, old)
        if new in self._now.folders:
            raise _error(errno.EISDIR, new)
        inode = self._now.files[old]

        def apply(names: Names) -> None:
            names.files.pop(old, None)
            names.files[new] = inode

        self._change(old.parent, apply)

    def remove(self, path: Path) -> None:
        self._step(f"remove {path}", changes=True)
        if path not in self._now.files:
            raise _error(errno.ENOENT, path)
        self._change(path.parent, lambda names: names.files.pop(path, None))

    def make_directory(self, path: Path) -> None:
        self._step(f"make_directory {path}")
        if path in self._now.folders or path in self._now.files:
            raise _error(errno.EEXIST, path)
        self._need_folder(path.parent)
        self._need_writable(path)
        self._change(path.parent, lambda names: names.folders.add(path))

    def remove_directory(self, path: Path) -> None:
        self._step(f"remove_directory {path}", changes=True)
        self._need_folder(path)
        if any(_is_below(inside, path) for inside in (*self._now.files, *self._now.folders)):
            raise _error(errno.ENOTEMPTY, path)
        self._change(path.parent, lambda names: names.folders.discard(path))

    def sync_directory(self, path: Path) -> None:
        self._step(f"sync_directory {path}")
        self._need_folder(path)
        self._sync_may_fail(path)
        for change in self._changes:
            if change.folder == path:
                change.apply(self._durable)
        self._changes = [change for change in self._changes if change.folder != path]

    def files(self, path: Path) -> list[Path]:
        self._step(f"files {path}")
        return [each for each in self._now.files if _is_below(each, path)]

    # What tests call.

    def contents(self, path: Path) -> bytearray:
        """Return the bytes of a file; changes of them are damage."""
        return self._now.files[path].data

    def restart(self) -> None:
        """Crash, if that has not happened yet, and come up again with what is on the disk."""
        for change in self._changes:
            if self._random.random() < 0.5:
                change.apply(self._durable)
        self._durable = self._durable.reachable()
        for inode in self._durable.files.values():
            self._lose(inode)
        self._now = Names(dict(self._durable.files), set(self._durable.folders))
        self._changes = []
        self._crashed, self.crash_at = False, None
        self.history.append("restart")

    # What a file calls.

    def append(self, inode: Inode, path: Path, data: bytes) -> None:
        partly = self._random.randrange(len(data) + 1)
        try:
            self._step(f"append {path} {len(data)} bytes", changes=True)
        except Crashed:
            inode.data += data[:partly]
            raise
        if self.capacity_bytes is not None:
            free = max(0, self.capacity_bytes - self.used_bytes())
            if len(data) > free:
                inode.data += data[:free]
                raise _error(errno.ENOSPC, path)
        inode.data += data

    def used_bytes(self) -> int:
        return sum(len(inode.data) for inode in self._now.files.values())

    def sync(self, inode: Inode, path: Path) -> None:
        self._step(f"sync {path}")
        try:
            self._sync_may_fail(path)
        except OSError:
            inode.lost = (inode.durable_bytes, len(inode.data))
            raise
        inode.durable_bytes = len(inode.data)

    def alive(self) -> None:
        if self._crashed:
            raise Crashed

    def _step(self, what: str, changes: bool = False) -> None:
        self.alive()
        self.steps += 1
        self.history.append(f"{self.steps} {what}")
        if self.steps == self.crash_at:
            self._crashed = True
            raise Crashed
        if changes:
            self._need_writable(Path(what.split()[1]))

    def _sync_may_fail(self, path: Path) -> None:
        self.syncs += 1
        if self.syncs in self.failing_syncs:
            raise _error(errno.EIO, path)

    def _change(self, folder: Path, apply: Callable[[Names], None]) -> None:
        apply(self._now)
        self._changes.append(NameChange(folder, apply))

    def _need_folder(self, path: Path) -> None:
        if path not in self._now.folders:
            raise _error(errno.ENOENT, path)

    def _need_writable(self, path: Path) -> None:
        if self.read_only:
            raise _error(errno.EROFS, path)

    def _lose(self, inode: Inode) -> None:
        start, end = inode.lost
        inode.data[start:end] = self._random.randbytes(end - start)
        kept = self._random.randint(inode.durable_bytes, len(inode.data))
        torn = len(inode.data) - kept
        rest = self._random.choice([b"", bytes(torn), self._random.randbytes(torn)])
        inode.data[kept:] = rest
        inode.durable_bytes, inode.lost = len(inode.data), (0, 0)


class SimulatedFile:
    """An open file of a simulated disk."""

    def __init__(self, disk: SimulatedDisk, inode: Inode, path: Path) -> None:
        self._disk, self._inode, self._path = disk, inode, path

    def append(self, buffers: Sequence[Buffer]) -> None:
        self._disk.append(self._inode, self._path, b"".join(bytes(each) for each in buffers))

    def sync(self) -> None:
        self._disk.sync(self._inode, self._path)

    def size_bytes(self) -> int:
        self._disk.alive()
        return len(self._inode.data)

    def read_into(self, buffer: memoryview, offset: int) -> int:
        self._disk.alive()
        data = self._inode.data[offset : offset + len(buffer)]
        buffer[: len(data)] = data
        return len(data)

    def read_ahead(self, offset: int, size_bytes: int) -> None:
        """Do nothing."""

    def close(self) -> None:
        self._disk.alive()


def _is_below(path: Path, folder: Path) -> bool:
    """True for a path in `folder` or in a folder of it."""
    return str(path).startswith(f"{folder}/" if folder.name else "/") and path != folder


def _error(number: int, path: Path) -> OSError:
    return OSError(number, os.strerror(number), str(path))
