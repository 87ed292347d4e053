"""Memory that two processes of one host map: one end of a connection writes it, the other reads.

An area is an unnamed file in memory (memfd), so nothing of it is left when its processes are gone,
however they end. Its owner passes the descriptor through a Unix socket. The size is sealed: a
reader that maps it cannot be killed by a truncation. All pages are there from the beginning, so
memory that is short is an error here and no signal later.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os

import numpy as np

from psrt.core.errors import ErrorCode, WireError
from psrt.core.types import U8

_SMALLEST_BYTES = 1 << 20
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


class Area:
    """Memory of the owner: `memory` (size,) uint8. `fd` is there until the other end has it."""

    def __init__(self, size_bytes: int) -> None:
        """Of `size_bytes` or more; raises `OSError` if there is no memory, or may be none."""
        rounded = area_bytes(size_bytes)
        self.fd: int | None = os.memfd_create("psrt", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.posix_fallocate(self.fd, 0, rounded)
            fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, _SEALS)
            self.memory = _mapped(self.fd, rounded, mmap.PROT_READ | mmap.PROT_WRITE)
        except BaseException:
            self.passed()
            raise

    def passed(self) -> None:
        """The descriptor was sent, or will never be."""
        if self.fd is not None:
            with contextlib.suppress(OSError):
                os.close(self.fd)
            self.fd = None


def attach(fd: int, most_bytes: int) -> U8:
    """(size,) uint8, read-only: the memory of another process, of `most_bytes` at most.

    `fd` is closed. Raises `WireError` if it is no area.
    """
    try:
        size_bytes = os.fstat(fd).st_size
        if fcntl.fcntl(fd, fcntl.F_GET_SEALS) & _SEALS != _SEALS:
            raise WireError("The peer passed memory whose size it could still change.")
        if not 0 < size_bytes <= most_bytes:
            raise WireError(
                f"The peer passed {size_bytes} bytes of memory; the limit is {most_bytes}.",
                code=ErrorCode.WIRE_TOO_LARGE,
            )
        return _mapped(fd, size_bytes, mmap.PROT_READ)
    except OSError as error:
        raise WireError(f"The peer passed a descriptor that is no memory: {error}.") from error
    finally:
        os.close(fd)


def area_bytes(payload_bytes: int) -> int:
    """Of an area for a payload of so many: a power of two, so that slowly growing ones do not need
    a new area each time."""
    return max(_SMALLEST_BYTES, 1 << (payload_bytes - 1).bit_length())


def _mapped(fd: int, size_bytes: int, protection: int) -> U8:
    """The mapping lives as long as the last view of the array; it has a descriptor of its own."""
    return np.frombuffer(mmap.mmap(fd, size_bytes, mmap.MAP_SHARED, protection), np.uint8)
