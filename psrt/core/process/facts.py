"""Facts of this process: its release, clock, and memory with its limit."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import psrt
from psrt.core.process.control_group import group_limit_bytes

_STATM = Path("/proc/self/statm")


def process_facts() -> dict[str, Any]:
    """Process, release, clock (seconds since 1970), and memory with its limit, in bytes."""
    return {
        "pid": os.getpid(),
        "version": psrt.__version__,
        "now_s": time.time(),
        "memory_bytes": _resident_bytes(),
        "memory_limit_bytes": memory_limit_bytes(),
    }


def memory_limit_bytes() -> int:
    """The least of the limits of the control groups and the memory of the host."""
    host = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(host, group_limit_bytes() or host)


def _resident_bytes() -> int:
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
