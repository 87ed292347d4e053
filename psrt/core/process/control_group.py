"""Limits of the control groups of this process: of its own group, and of those above it.

version 2   /sys/fs/cgroup/GROUP/memory.max
version 1   /sys/fs/cgroup/memory/GROUP/memory.limit_in_bytes
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


def group_limit_bytes(own: Path = _OWN, root: Path = _ROOT) -> int | None:
    """The least limit of memory, in bytes; None = no group has one."""
    texts = [
        *_texts("memory", "memory.max", own, root),
        *_texts("memory", "memory.limit_in_bytes", own, root),
    ]
    return min((int(text) for text in texts if text.isdecimal()), default=None)


def group_cores(own: Path = _OWN, root: Path = _ROOT) -> float | None:
    """The least quota of CPU time, in cores; None = no group has one."""
    older = [_texts("cpu", f"cpu.cfs_{part}_us", own, root) for part in ("quota", "period")]
    pairs = [
        *(text.split() for text in _texts("cpu", "cpu.max", own, root)),
        *zip(*older, strict=False),
    ]
    limited = [pair for pair in pairs if len(pair) == 2 and pair[0].isdecimal()]
    return min((int(quota) / int(period) for quota, period in limited), default=None)


def _texts(controller: str, name: str, own: Path, root: Path) -> Iterator[str]:
    """Contents of the files `name`, from the own group to the root."""
    for folder in _folders(controller, own, root):
        with contextlib.suppress(OSError):
            yield (folder / name).read_text().strip()


def _folders(controller: str, own: Path, root: Path) -> Iterator[Path]:
    """Folders of the groups of this process; in a container its own group is the root."""
    for top, group in _tops(controller, own, root):
        below = top / group.lstrip("/")
        yield from (each for each in (below, *below.parents) if each.is_relative_to(top))


def _tops(controller: str, own: Path, root: Path) -> Iterator[tuple[Path, str]]:
    with contextlib.suppress(OSError):
        for line in own.read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if not controllers:
                yield root, group
            elif controller in controllers.split(","):
                yield root / controller, group
