"""The directory of cuts, on a small disk that can be filled and made read-only."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

SIZE = "4m"
_TRIES = 50


def can_mount(place: Path) -> bool:
    """True if this user may mount a disk: tried once, at `place`."""
    disk = CutsDisk(place, is_small=True)
    try:
        disk.open()
    except (OSError, subprocess.CalledProcessError):
        return False
    disk.close()
    return True


class CutsDisk:
    """A directory at `path`; with `is_small` a file system of its own, of 4 MiB."""

    def __init__(self, path: Path, is_small: bool) -> None:
        self.path, self._is_small = path, is_small
        self._filler = path / "filler"
        self._is_read_only = False
        self.was_read_only = False

    def open(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        if self._is_small:
            options = f"size={SIZE},mode=755"
            _run("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.path))

    def break_down(self, is_full: bool) -> None:
        """Fill the disk, or make it read-only; files that are open for writing keep it writable
        for a moment."""
        if not self._is_small:
            return
        if is_full:
            self._fill()
            return
        for _ in range(_TRIES):
            with contextlib.suppress(subprocess.CalledProcessError):
                _run("mount", "-o", "remount,ro", str(self.path))
                self._is_read_only = self.was_read_only = True
                return

    def mend(self) -> None:
        """Make the disk writable, with free room."""
        if self._is_read_only:
            _run("mount", "-o", "remount,rw", str(self.path))
            self._is_read_only = False
        self._filler.unlink(missing_ok=True)

    def close(self) -> None:
        if self._is_small:
            _run("umount", "-l", str(self.path))

    def _fill(self) -> None:
        with contextlib.suppress(OSError), self._filler.open("ab", buffering=0) as filler:
            for size in (1 << 16, 1 << 12, 1):
                with contextlib.suppress(OSError):
                    while True:
                        filler.write(bytes(size))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
