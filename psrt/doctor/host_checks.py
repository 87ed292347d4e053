"""Findings of a host: plain functions of its facts."""

from __future__ import annotations

from collections.abc import Iterator

from psrt.core.quantities import format_bytes
from psrt.doctor.findings import Finding
from psrt.doctor.host_facts import HostFacts

LEAST_FILES = 4096
LEAST_BYTES = 1 << 30
LEAST_SHM_BYTES = 64 << 20
SLOW_SYNC_S = 0.05
HERE = "this host"


def check_host(facts: HostFacts) -> list[Finding]:
    return [*_limits(facts), *_memory(facts), *_cores(facts), *_files(facts)]


def _limits(facts: HostFacts) -> Iterator[Finding]:
    if facts.open_files_limit < LEAST_FILES:
        yield Finding(
            "open-files",
            HERE,
            f"a process may open {facts.open_files_limit} files; a pserver needs one for each "
            "connection.",
            f"Raise it: ulimit -n {LEAST_FILES}, or LimitNOFILE= of the service.",
        )


def _memory(facts: HostFacts) -> Iterator[Finding]:
    if facts.available_bytes is not None and facts.available_bytes < LEAST_BYTES:
        yield Finding(
            "memory",
            HERE,
            f"{format_bytes(facts.available_bytes)} of memory are available.",
            "End other processes, or place fewer rows here (psrt plan shows what a job needs).",
        )
    if facts.limit_bytes is not None and facts.limit_bytes < LEAST_BYTES:
        yield Finding(
            "memory-limit",
            HERE,
            f"the control group allows {format_bytes(facts.limit_bytes)} of memory.",
            "Raise MemoryMax= of the service, or the limit of the container.",
        )
    if facts.shm_bytes is not None and facts.shm_bytes <= LEAST_SHM_BYTES:
        yield Finding(
            "dev-shm",
            HERE,
            f"/dev/shm has {format_bytes(facts.shm_bytes)}: data loaders of PyTorch with workers "
            "fail with a bus error. psrt itself does not use it.",
            "mount -o remount,size=2g /dev/shm; of a container --shm-size, of a pod a volume of "
            "medium Memory.",
        )
    if facts.huge_pages == "never":
        yield Finding(
            "huge-pages",
            HERE,
            "transparent huge pages are off; random reads of large tables are slower.",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        )


def _cores(facts: HostFacts) -> Iterator[Finding]:
    if facts.cpu_quota is not None and facts.cpu_quota < facts.cores - 0.5:
        yield Finding(
            "cpu-quota",
            HERE,
            f"psrt uses {facts.cores} cores, and the control group allows {facts.cpu_quota:.1f}: "
            "its threads are stopped in turn.",
            "Raise CPUQuota= or the CPU limit of the container, or bind psrt to fewer cores "
            "(taskset, CPUAffinity=).",
        )
    if facts.blas_threads is not None and facts.blas_threads > facts.cores:
        yield Finding(
            "blas-threads",
            HERE,
            f"variables ask for {facts.blas_threads} BLAS threads on {facts.cores} cores.",
            "Unset OPENBLAS_NUM_THREADS, OMP_NUM_THREADS and MKL_NUM_THREADS; psrt sets the "
            "number by cpu_threads.",
        )


def _files(facts: HostFacts) -> Iterator[Finding]:
    if facts.cache_problem:
        yield Finding(
            "kernel-cache",
            HERE,
            f"compiled kernels are not kept: {facts.cache_problem}",
            "Set cache_dir to a directory of this user alone; else each start compiles, for "
            "about half a minute.",
        )
    if facts.directory_problem:
        yield Finding(
            "directory",
            facts.directory,
            f"it cannot be written: {facts.directory_problem}.",
            "Correct its owner and mode, or choose another checkpoint_dir.",
        )
    if facts.free_bytes is not None and facts.free_bytes < LEAST_BYTES:
        yield Finding(
            "disk-space",
            facts.directory,
            f"{format_bytes(facts.free_bytes)} are free.",
            "Delete old cuts (psrt checkpoint prune), or choose another checkpoint_dir.",
        )
    if facts.sync_s is not None and facts.sync_s > SLOW_SYNC_S:
        yield Finding(
            "slow-disk",
            facts.directory,
            f"a durable write of 4 KiB takes {facts.sync_s * 1e3:.0f} ms.",
            "Use a disk with faster fsync; durability = delta waits for it.",
        )
