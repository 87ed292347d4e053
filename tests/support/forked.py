"""`psrt` in a process that is forked from one that has loaded it: a tenth of a start's CPU time.

It is the command of users from its first line on, and a process of its own: with its signals, its
files and its end. Only the start of Python is left out; so it is of the children of a launch.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerContext
from pathlib import Path

from tests.support.forked_children import fork_children

CONTEXT: ForkServerContext = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.support.preloaded"])


class ForkedPsrt:
    """`psrt ARGUMENTS` with its output in the file `log`; has what tests use of a `Popen`."""

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], log: Path, directory: Path
    ) -> None:
        self.args = ["psrt", *arguments]
        given = list(arguments), dict(environment), log.resolve(), directory
        self._process = CONTEXT.Process(target=_main, args=given, daemon=True)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, -n after signal n; raises `subprocess.TimeoutExpired`."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal; a process that has ended gets none."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _main(arguments: list[str], environment: dict[str, str], log: Path, directory: Path) -> None:
    """Take the files, the environment and the arguments of the process, and run the command."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os.close(descriptor)
    sys.stdout.reconfigure(line_buffering=True, write_through=True)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    if arguments[0] == "launch":
        fork_children(run_to_end)
    os._exit(run_to_end(arguments))


def run_to_end(arguments: list[str]) -> int:
    """The command to its end, with all that Python does then; returns the exit code."""
    sys.argv = ["psrt", *arguments]
    from psrt.cli.main import run

    code = run(arguments)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code
