"""Files through a program: each on the standard input of a shell command, whose output is parsed.

`Piped` is the text source behind `set_pipe_command`. A process runs for each file being read, in a
process group of its own; a plain file is its standard input itself, anything else is copied into it
by a thread. The program may be any that writes lines, and need not read to the end.

A process that fails is a `DataError` with the file's name, its exit code and the last lines of its
standard error; so is one that fails within a `|` of the command, where there is a bash to tell.
What a process that succeeds writes to its standard error is logged as a warning. Whoever stops
reading early ends the process group, and with a process go those it has left behind. A program that
writes nothing is found out by the reader's deadline, which names the file.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import shutil
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Iterator
from typing import IO, cast

from psrt.core.errors import ConfigError, DataError
from psrt.core.threads import CrashReport, start_thread
from psrt.data.sources.places import DataFile, FilePart
from psrt.data.sources.raw_bytes import open_text, read_some
from psrt.data.sources.sources import Blocks, cut, skip

log = logging.getLogger(__name__)

AS_IT_IS = "cat"
"""The command that needs no process."""

_PIPE_BYTES = 1 << 20
_SHOWN_LINES, _LINE_BYTES = 5, 500


class Piped:
    """Each file through `command`, for one reader: when stopped it stays so.

    Any thread may ask for blocks, and any other stop them all.
    """

    def __init__(self, command: str) -> None:
        self._command = command
        self._running: set[_Process] = set()
        self._stopped = False
        self._lock = threading.Lock()

    def name(self, path: DataFile) -> str:
        return f"{path} | {self._command}"

    def blocks(self, path: DataFile, start: int = 0) -> Blocks:
        """What the command writes of the file, behind its first `start` bytes; `stop` ends it
        early and without an error."""
        if isinstance(path, FilePart):
            raise ConfigError(
                f"a pipe command takes whole files, not {path}.", hint="Leave the command out."
            )
        with open_text(path) as file, self._process(file, self.name(path)) as process:
            skip(process.output, start, self.name(path))
            yield from cut(process.output, self.name(path))
            process.leave()

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.end()

    @contextlib.contextmanager
    def _process(self, file: IO[bytes], name: str) -> Iterator[_Process]:
        process = _Process(self._command, file, name)
        with self._lock:
            self._running.add(process)
            if self._stopped:
                process.end()
        try:
            yield process
        finally:
            with self._lock:
                self._running.remove(process)
            process.close()


class _Process:
    """One process; `ended` implies that its exit code is of our making."""

    def __init__(self, command: str, file: IO[bytes], name: str) -> None:
        self._name, self._file = name, file
        self._ended = False
        self._crashes = CrashReport()
        self._said: deque[str] = deque(maxlen=_SHOWN_LINES)
        plain = isinstance(file, io.FileIO)
        self._child = subprocess.Popen(
            [*_shell(), command],
            bufsize=0,
            pipesize=_PIPE_BYTES,
            stdin=file if plain else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._child.stdout is not None
        self.output = self._child.stdout
        self._threads = [start_thread(self._listen, "data-pipe-stderr", self._crashes)]
        if not plain:
            self._threads.append(start_thread(self._copy, "data-pipe-stdin", self._crashes))

    def leave(self) -> None:
        """The output has ended: wait for the exit code; raises `DataError` unless it is 0."""
        code = self._reap()
        if self._ended:
            return
        if isinstance(self._crashes.error, DataError):
            raise self._crashes.error
        self._crashes.check()
        if code:
            raise DataError(
                f"{self._name}: the program {_ending(code)}. {self._last_lines()}",
                hint="Try it by hand: it gets the file on its standard input.",
            )
        if self._said:
            log.warning("%s: %s", self._name, self._last_lines())

    def end(self) -> None:
        """Kill the process and all it has started."""
        self._ended = True
        self._kill()

    def close(self) -> None:
        self.end()
        self._reap()
        self.output.close()

    def _kill(self) -> None:
        if self._child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)

    def _reap(self) -> int:
        """Wait for the process, then end what it left behind, which may hold its pipes open.

        In this order: as long as nobody has collected the exit code, the group's number is its own.
        """
        if self._child.returncode is None:
            os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOWAIT)
            self._kill()
        code = self._child.wait()
        for thread in self._threads:
            thread.join()
        return code

    def _copy(self) -> None:
        """A program may stop reading before the end of a file: it has what it wants."""
        buffer = memoryview(bytearray(_PIPE_BYTES))
        into = io.BufferedWriter(cast("io.FileIO", self._child.stdin))
        with contextlib.suppress(BrokenPipeError), into:
            while got := read_some(self._file, buffer, self._name):
                into.write(buffer[:got])

    def _listen(self) -> None:
        with io.BufferedReader(cast("io.FileIO", self._child.stderr)) as stream:
            while line := stream.readline(_LINE_BYTES):
                if text := line.decode("utf-8", "backslashreplace").rstrip():
                    self._said.append(text)

    def _last_lines(self) -> str:
        if not self._said:
            return "It wrote nothing to its standard error."
        return "Its standard error ends:\n" + "\n".join(f"  {line}" for line in self._said)


def _shell() -> list[str]:
    bash = shutil.which("bash")
    return [bash, "-o", "pipefail", "-c"] if bash else ["/bin/sh", "-c"]


def _ending(code: int) -> str:
    return f"ended with exit code {code}" if code > 0 else f"was killed by signal {-code}"
