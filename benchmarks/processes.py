"""What Linux says about a process: memory, threads, open files, CPU time."""

from __future__ import annotations

import os
from pathlib import Path

MIB = 1 << 20
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """Memory of the process that lies in RAM."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def peak_resident_bytes() -> int:
    """The most memory of this process that ever lay in RAM. What `getrusage` says begins with the
    memory of the process that started this one."""
    status = Path("/proc/self/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) << 10


def threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))


def open_files(pid: int) -> int:
    """File descriptors, sockets among them."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def cpu_s(pid: int) -> float:
    """CPU seconds of all threads since the process began."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / _TICKS_PER_S
