"""Stacks of all threads of a process, on request.

A real-time signal asks for them: a thread writes them to an unnamed file in memory, which another
process of the same user, or of root, finds and reads by /proc, as stderr may be a pipe or the
journal. The thread holds the interpreter's lock. A handler that read the stacks of threads while
they ran would now and then end the process, so it only wakes the thread.

SIGQUIT, for a person, does read them in its handler, and writes them to stderr: it works although
a thread keeps the lock for ever, and is for a process that hangs.
"""

from __future__ import annotations

import contextlib
import faulthandler
import fcntl
import os
import select
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from psrt.core.threads import CrashReport, start_thread

_NAME = "psrt-stacks"
_TARGET = f"/memfd:{_NAME}"
_PROC = Path("/proc")
_POLL_S, _QUIET_POLLS = 0.02, 5
_PIPE_BYTES, _QUIET_S = 1 << 16, 0.05


def write_stacks_on_request() -> None:
    """Obey both signals from now on; does nothing where stderr is closed or no file."""
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        faulthandler.register(signal.SIGQUIT, all_threads=True)
    if hasattr(os, "memfd_create") and not _own_file():
        file = os.memfd_create(_NAME, os.MFD_CLOEXEC)
        fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)
        asked, ask = os.pipe()
        os.set_blocking(ask, False)
        signal.signal(_request(), signal.SIG_IGN)  # once the handler is gone, at the end
        faulthandler.register(_request(), file=ask, all_threads=False)
        start_thread(lambda: _write_when_asked(asked, file), "stacks", CrashReport())


def _write_when_asked(asked: int, file: int) -> None:
    """Write all stacks each time that a handler has written to the pipe `asked`, line by line."""
    while os.read(asked, _PIPE_BYTES):
        while select.select([asked], [], [], _QUIET_S)[0]:
            os.read(asked, _PIPE_BYTES)
        faulthandler.dump_traceback(file)


def processes_with_stacks() -> list[int]:
    """Processes of this host that write their stacks on request, as far as this user may see."""
    numbers = sorted(int(each.name) for each in _PROC.iterdir() if each.name.isdecimal())
    return [pid for pid in numbers if _file_of(pid) and _obeys(pid)]


def stacks_of(pid: int, timeout_s: float = 2.0) -> str:
    """The stacks of a process of `processes_with_stacks`; "" if it has written none in time.

    Raises `OSError` if it has ended.
    """
    file = _file_of(pid)
    if file is None:
        raise ProcessLookupError(f"process {pid} has ended")
    os.truncate(file, 0)
    os.kill(pid, _request())
    return _settled(file, time.monotonic() + timeout_s)


def _settled(file: Path, deadline_s: float) -> str:
    """The text of a file once it has not grown for some polls."""
    text, quiet = "", 0
    while quiet < _QUIET_POLLS and time.monotonic() < deadline_s:
        time.sleep(_POLL_S)
        before, text = text, file.read_text(errors="replace")
        quiet = quiet + 1 if text and text == before else 0
    return text


def _request() -> int:
    return signal.SIGRTMIN + 5


def _own_file() -> Path | None:
    return _file_of(os.getpid())


def _file_of(pid: int) -> Path | None:
    """The file for stacks among the open files of a process."""
    return next(_files_of(pid), None)


def _files_of(pid: int) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        for each in (_PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                if os.readlink(each).startswith(_TARGET):
                    yield each


def _obeys(pid: int) -> bool:
    """True if a process has a handler of the request, which would end it otherwise."""
    with contextlib.suppress(OSError, StopIteration):
        lines = (_PROC / str(pid) / "status").read_text().splitlines()
        caught = next(line.split()[1] for line in lines if line.startswith("SigCgt:"))
        return bool(int(caught, 16) >> (_request() - 1) & 1)
    return False
