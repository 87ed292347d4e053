"""Facts of this process: its release, clock, and memory with its limit."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psrt

_STATM = Path("/proc/self/statm")
_CGROUPS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def process_facts() -> dict[str, Any]:
    """Process, release, clock (seconds since 1970), and memory with its limit, in bytes."""
    return {
        "pid": os.getpid(),
        "version": psrt.__version__,
        "now_s": time.time(),
        "memory_bytes": _resident_bytes(),
        "memory_limit_bytes": memory_limit_bytes(),
    }


def memory_limit_bytes(files: Sequence[Path] = _CGROUPS) -> int:
    """The least of the limits of the control group and the memory of the host."""
    host = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([host, *filter(None, map(_limit_in, files))])


def _resident_bytes() -> int:
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _limit_in(path: Path) -> int | None:
    """The number in a file of a control group; None for `max`, or without such a file."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
