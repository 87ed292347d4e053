"""Wall clocks that the lab moves, one for each process; other clocks run as they do.

A library that is loaded before all others adds the seconds in a file to the time of day. So a jump
of the clock needs no rights, and strikes one process of a host alone.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("wall_clock.c")
VARIABLE = "LAB_WALL_CLOCK"
"""The file of a process's clock."""

_LOADED = "LD_PRELOAD"


def compiler() -> str | None:
    """A C compiler, or None: then no clock can be moved."""
    return shutil.which("cc")


def preload(place: Path) -> None:
    """Let processes that start from now on have clocks that can be moved.

    Called before the first one is forked; `place` keeps the library while any of them starts.
    """
    library, cc = place / "wall_clock.so", compiler()
    assert cc is not None, "the caller has looked for a compiler"
    command = [cc, "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    os.environ[_LOADED] = str(library)


def follow(path: str) -> None:
    """Let this process have the clock of the file at `path`."""
    failed = ctypes.CDLL(None).wall_clock_from(path.encode())
    assert not failed, f"{path} cannot be mapped"


def move(path: Path, by_s: int) -> None:
    """Let the clock of a process be `by_s` seconds ahead; it jumps while the process runs."""
    with path.open("r+b" if path.exists() else "wb") as file:
        file.write(struct.pack("l", by_s))
