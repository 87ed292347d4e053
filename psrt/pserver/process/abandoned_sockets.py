"""Removal of Unix sockets that pservers left in private directories when they were killed."""

from __future__ import annotations

import contextlib
import glob
import os
import socket
import stat
from pathlib import Path


def remove_abandoned_sockets(temporary: Path) -> None:
    """Remove the sockets of killed pservers below `temporary`, and their directories."""
    # Not by `temporary.glob`, which fails when a directory disappears during its search.
    for path in map(Path, glob.glob(f"{glob.escape(str(temporary))}/psrt-*/psrt-*.sock")):
        # Another pserver may be faster, or the directory holds other files and stays.
        with contextlib.suppress(OSError):
            if _is_private(path.parent) and _is_abandoned(path):
                path.unlink()
                path.parent.rmdir()


def _is_private(directory: Path) -> bool:
    status = directory.lstat()
    return status.st_mode == stat.S_IFDIR | 0o700 and status.st_uid == os.getuid()


def _is_abandoned(path: Path) -> bool:
    """Return True if no process has this socket open.

    The probe is a datagram socket, which is of the wrong type: an open socket refuses it at once,
    even before it listens, and its process is not disturbed.
    """
    if not stat.S_ISSOCK(path.lstat().st_mode):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return True
    return False
