"""Faults planted in what one process sees of its host: mounts, limits, control groups, a disk.

Each is a command to put before `psrt doctor`; nothing of the machine itself is changed, and mounts
end with the process.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")


def mounted(*commands: str) -> list[str]:
    """The words before a command that runs once `commands` have changed its mounts."""
    script = "; ".join(["set -e", *commands, 'exec "$@"'])
    return ["unshare", "--mount", "bash", "-c", script, "planted"]


def with_file(path: str, text: str, folder: Path) -> list[str]:
    """Replace a file that the kernel or the administrator has written."""
    file = folder / Path(path).name
    file.write_text(text)
    return mounted(f"mount --bind {file} {path}")


def with_disk(place: Path, options: str) -> list[str]:
    """A file system in memory at `place`."""
    place.mkdir(exist_ok=True)
    return mounted(f"mount -t tmpfs -o {options} tmpfs {place}")


def with_slow_sync(delay_ms: int) -> list[str]:
    inject = f"inject=fsync:delay_exit={delay_ms * 1000}"
    return ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync", "-e", inject]


@contextlib.contextmanager
def control_group(controller: str, **limits: str) -> Iterator[Path]:
    """A group of version 1 below the own one, with `limits` in its files."""
    own = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    below = next(path for _, names, path in own if controller in names.split(","))
    group = GROUPS / controller / below.lstrip("/") / f"psrt-planted-{os.getpid()}"
    group.mkdir()
    try:
        for name, value in limits.items():
            (group / name.replace("__", ".")).write_text(value)
        yield group
    finally:
        for pid in (group / "cgroup.procs").read_text().split():
            (group.parent / "cgroup.procs").write_text(pid)
        group.rmdir()


def within(group: Path) -> list[str]:
    """The words before a command that runs in a control group."""
    return ["bash", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "planted"]
