"""The processes of a launch, started and signalled by one thread that waits only in `pump`.

Children never outlive the launcher. Each asks the kernel for SIGKILL when its parent ends
(`PR_SET_PDEATHSIG`), because a `finally` does not run when the launcher itself is killed; every
regular exit goes through `close`. Each is in a process group of its own, so Ctrl-C reaches the
launcher alone, which decides the order of stopping. `preexec_fn` is safe here because it takes no
lock and gRPC leaves forks alone (`rpc/grpc_library`).
"""

from __future__ import annotations

import ctypes
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from psrt.launch.outputs import LineSplitter, last_lines
from psrt.launch.plan import LOOPBACK, ChildId, Command
from psrt.launch.replacements import take_over_line

_CHUNK_BYTES = 65536
_PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def die_with_parent() -> None:
    """Request SIGKILL at the end of the parent; runs in the child before exec."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _started(command: Command, stdin: int, stdout: int | None = None) -> subprocess.Popen[bytes]:
    """Start a process whose output goes to its log, standard output optionally elsewhere."""
    with command.log.open("ab") as log:  # append: a followed child's log has two writers
        return subprocess.Popen(
            command.arguments,
            env=dict(command.environ),
            stdin=stdin,
            stdout=log if stdout is None else stdout,
            stderr=log,
            process_group=0,
            preexec_fn=die_with_parent,
        )


class Process:
    """One running or ended child; `code` is None while it runs and −n when signal n ended it.

    Output goes to its log; when `stdout` is given, standard output goes to that descriptor instead.
    `endpoint` is that of a pserver, set once it serves.
    """

    def __init__(
        self,
        command: Command,
        *,
        now: float,
        stdout: int | None = None,
        standby: Standby | None = None,
    ) -> None:
        self.command = command
        self.started_at = now
        self.seconds = 0.0
        self.code: int | None = None
        self.endpoint = ""
        command.result.unlink(missing_ok=True)  # files of an earlier run
        if not command.keeps_log:
            command.log.unlink(missing_ok=True)
        taken = None if standby is None else standby.take_over(command)
        self._popen = _started(command, subprocess.DEVNULL, stdout) if taken is None else taken

    @property
    def child(self) -> ChildId:
        return self.command.child

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def host(self) -> str:
        return LOOPBACK

    @property
    def log(self) -> str:
        return str(self.command.log)

    def has_just_ended(self, now: float) -> bool:
        """Return True once, at the first call after the end."""
        if self.code is not None or self._popen.poll() is None:
            return False
        self.code, self.seconds = self._popen.returncode, now - self.started_at
        return True

    def send(self, number: signal.Signals) -> None:
        self._popen.send_signal(number)  # does nothing once the process was waited for

    def close(self) -> None:
        if self._popen.poll() is None:
            self._popen.kill()
            self._popen.wait()

    def last_lines(self) -> str:
        return last_lines(self.command.log)


class Standby:
    """A process that has loaded all that a pserver needs, and waits to become one."""

    def __init__(self, command: Command) -> None:
        command.log.unlink(missing_ok=True)
        self._popen = _started(command, subprocess.PIPE)

    @property
    def has_ended(self) -> bool:
        return self._popen.poll() is not None

    def take_over(self, command: Command) -> subprocess.Popen[bytes] | None:
        """Let it run the command of a pserver; None if it has ended, and cannot."""
        pipe = self._popen.stdin
        assert pipe is not None, "it is started with a pipe"
        try:
            pipe.write(take_over_line(command).encode())
            pipe.close()
        except OSError:
            return None
        return self._popen

    def close(self) -> None:
        """End it now."""
        if self._popen.poll() is None:
            self._popen.kill()
            self._popen.wait()


class Follower:
    """Copies the output of a child from a pipe to its log, and line by line to `say`."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._selector = selectors.DefaultSelector()
        self._lines = LineSplitter()

    def start(self, command: Command, now: float) -> Process:
        """Start a process whose standard output is followed."""
        read_end, write_end = os.pipe()
        try:
            self._selector.register(read_end, selectors.EVENT_READ, command.log)
            return Process(command, now=now, stdout=write_end)
        finally:
            os.close(write_end)  # the child has its own; an open copy would hide the end of output

    def pump(self, timeout_s: float) -> None:
        """Wait for output, `timeout_s` at most, and copy it."""
        for key, _ in self._selector.select(timeout_s):
            chunk = os.read(key.fd, _CHUNK_BYTES)
            if chunk:
                self._pass_on(chunk, key.data)
            else:
                self._drop(key.fd)

    def close(self) -> None:
        """Copy the output that ended processes left in their pipes."""
        while self._selector.select(0.0):
            self.pump(0.0)
        for key in list(self._selector.get_map().values()):
            self._drop(key.fd)
        self._selector.close()

    def _pass_on(self, chunk: bytes, path: Path) -> None:
        with path.open("ab") as log:
            log.write(chunk)
        for line in self._lines.feed(chunk):
            self._say(line.decode(errors="replace"))

    def _drop(self, fd: int) -> None:
        self._selector.unregister(fd)
        os.close(fd)
        if self._lines.rest:
            self._say(self._lines.rest.decode(errors="replace"))
