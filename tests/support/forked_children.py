"""Children of a launch, forked from it: a launch of tests has loaded all that they need.

Each is a process of its own, as one that is started anew: with its signals, files, environment and
end. Only the start of Python is left out. A launch of a script starts its ranks anew.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

from psrt.config import overrides
from psrt.launch import processes
from psrt.launch.plan import PSRT, Command

_CAPTURED = (signal.SIGTERM, signal.SIGUSR1)
"""Signals that a launch handles and a new process does not, besides SIGINT."""


class ForkedChild:
    """`psrt ARGUMENTS` of a command; has what a launch uses of a `Popen`."""

    def __init__(
        self, command: Command, run: Callable[[list[str]], int], stdin: int, stdout: int | None
    ) -> None:
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = None
        given, kept = os.pipe() if stdin == subprocess.PIPE else (os.open(os.devnull, 0), None)
        with command.log.open("ab") as log:
            output = log.fileno() if stdout is None else stdout
            self.pid = os.fork()
            if not self.pid:
                _become(command, run, [given, output, log.fileno()])
        os.close(given)
        if kept is not None:
            self.stdin = open(kept, "wb")  # noqa: SIM115  # a launch closes it

    def poll(self) -> int | None:
        return self._reaped(os.WNOHANG)

    def wait(self) -> int | None:
        return self._reaped(0)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _reaped(self, options: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode


def fork_children(run: Callable[[list[str]], int]) -> None:
    """Let launches of this process fork their pservers and trainers; each calls `run`.

    `run` takes the arguments of `psrt`, and returns the exit code.
    """
    start_anew = processes._started

    def started(command: Command, stdin: int, stdout: int | None = None) -> Any:
        if command.arguments[: len(PSRT)] == PSRT:
            return ForkedChild(command, run, stdin, stdout)
        return start_anew(command, stdin, stdout)

    processes._started = started


def _become(command: Command, run: Callable[[list[str]], int], streams: Sequence[int]) -> NoReturn:
    """Be the process of a command, from its first instruction to its end."""
    code = 70
    try:
        os.setpgid(0, 0)
        processes.die_with_parent()
        _take(streams)
        _forget_the_launch()
        Path("/proc/self/comm").write_text(str(command.child))
        os.environ.clear()
        os.environ.update(command.environ)
        code = run(list(command.arguments[len(PSRT) :]))
    finally:
        os._exit(code)


def _take(streams: Sequence[int]) -> None:
    """Have these three as standard streams, and no other file of the launch."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    os.closerange(3, 1 + max(map(int, os.listdir("/proc/self/fd"))))
    sys.stdin = open(0, closefd=False)  # noqa: SIM115


def _forget_the_launch() -> None:
    gc.freeze()  # what closes files of the launch, whose numbers others have now
    overrides.OVERRIDES = overrides.ProcessOverrides()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in _CAPTURED:
        signal.signal(number, signal.SIG_DFL)
