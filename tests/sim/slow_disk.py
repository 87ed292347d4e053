"""A simulated disk whose operations take virtual time, so that pushes come in between."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from psrt.storage.checksums import Buffer
from tests.sim.disk import SimulatedDisk, SimulatedFile
from tests.sim.world import World

MOST_S = 0.002


class SlowDisk:
    """`disk` on the clock of a world; see `psrt.storage.disk.Disk`."""

    def __init__(self, world: World, disk: SimulatedDisk) -> None:
        self._world, self._disk = world, disk

    def create(self, path: Path) -> SlowFile:
        return SlowFile(self, self._take().create(path))

    def open(self, path: Path) -> SlowFile:
        return SlowFile(self, self._take().open(path))

    def rename(self, old: Path, new: Path) -> None:
        self._take().rename(old, new)

    def remove(self, path: Path) -> None:
        self._take().remove(path)

    def make_directory(self, path: Path) -> None:
        self._take().make_directory(path)

    def remove_directory(self, path: Path) -> None:
        self._take().remove_directory(path)

    def sync_directory(self, path: Path) -> None:
        self._take().sync_directory(path)

    def files(self, path: Path) -> list[Path]:
        return self._take().files(path)

    def wait(self) -> None:
        """Pass some time, in which other fibers run."""
        if self._world.current is not None:
            self._world.sleep(self._world.random.uniform(0, MOST_S))

    def _take(self) -> SimulatedDisk:
        self.wait()
        return self._disk


class SlowFile:
    """A file of a `SlowDisk`."""

    def __init__(self, disk: SlowDisk, file: SimulatedFile) -> None:
        self._disk, self._file = disk, file

    def append(self, buffers: Sequence[Buffer]) -> None:
        self._disk.wait()
        self._file.append(buffers)

    def sync(self) -> None:
        self._disk.wait()
        self._file.sync()

    def size_bytes(self) -> int:
        return self._file.size_bytes()

    def read_into(self, buffer: memoryview, offset: int) -> int:
        return self._file.read_into(buffer, offset)

    def read_ahead(self, offset: int, size_bytes: int) -> None:
        """Do nothing."""

    def close(self) -> None:
        self._file.close()
