"""Facts of this host that matter to psrt, read once."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from psrt.config.load import environment
from psrt.core.process import group_cores, group_limit_bytes
from psrt.kernels.cache import directory_problem

_THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_SYNCS = 5
_SHM = "/dev/shm"


@dataclass(frozen=True)
class HostFacts:
    """Sizes are in bytes, times in seconds; None = unknown."""

    cores: int
    cpu_quota: float | None
    open_files_limit: int
    available_bytes: int | None
    limit_bytes: int | None
    huge_pages: str
    blas_threads: int | None
    cache_problem: str
    shm_bytes: int | None = None
    directory: str = ""
    directory_problem: str = ""
    free_bytes: int | None = None
    sync_s: float | None = None


def host_facts(cache_dir: str = "", directory: str = "") -> HostFacts:
    """Read the facts; `directory` is one for cuts, "" = none."""
    is_here = directory and "://" not in directory
    problem, free_bytes, sync_s = _directory(directory) if is_here else ("", None, None)
    return HostFacts(
        cores=os.cpu_count() or 1,
        cpu_quota=group_cores(),
        open_files_limit=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        available_bytes=_available_bytes(),
        limit_bytes=group_limit_bytes(),
        shm_bytes=_shm_bytes(),
        huge_pages=_chosen(_THP),
        blas_threads=_blas_threads(),
        cache_problem=directory_problem(cache_dir),
        directory=directory,
        directory_problem=problem,
        free_bytes=free_bytes,
        sync_s=sync_s,
    )


def _available_bytes() -> int | None:
    with contextlib.suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def _chosen(path: Path) -> str:
    """The word in brackets of a file such as `always [madvise] never`."""
    with contextlib.suppress(OSError):
        return path.read_text().partition("[")[2].partition("]")[0]
    return ""


def _blas_threads() -> int | None:
    given = environment()
    numbers = [int(given[name]) for name in _THREAD_VARIABLES if given.get(name, "").isdecimal()]
    return max(numbers, default=None)


def _directory(name: str) -> tuple[str, int | None, float | None]:
    """The problem of a directory, its free bytes, and the median time of a durable write."""
    try:
        with tempfile.NamedTemporaryFile(dir=name, prefix=".psrt-doctor-") as file:
            times = sorted(_sync_s(file.fileno()) for _ in range(_SYNCS))
        return "", shutil.disk_usage(name).free, times[_SYNCS // 2]
    except OSError as error:
        return error.strerror or str(error), None, None


def _sync_s(descriptor: int) -> float:
    os.write(descriptor, bytes(4096))
    started_s = time.monotonic()
    os.fsync(descriptor)
    return time.monotonic() - started_s


def _shm_bytes() -> int | None:
    with contextlib.suppress(OSError):
        return shutil.disk_usage(_SHM).total
    return None
