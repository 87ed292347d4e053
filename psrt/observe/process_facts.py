"""Version, memory limit and the standard metrics of a process."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path

import psrt
from psrt.observe.metric_page import MetricPage

_CGROUPS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def add_process_facts(page: MetricPage, role: str) -> None:
    """Add what pservers and trainers have in common, except for the `process_` metrics."""
    page.add("psrt_build_info", 1, role, psrt.__version__, platform.python_version())
    page.add("psrt_process_memory_limit_bytes", memory_limit_bytes())


def memory_limit_bytes(files: Sequence[Path] = _CGROUPS) -> int:
    """The least of the limits of the control group and the memory of the host."""
    host = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([host, *filter(None, map(_limit_in, files))])


def _limit_in(path: Path) -> int | None:
    """The number in a file of a control group; None for `max`, or without such a file."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
