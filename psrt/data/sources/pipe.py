"""Files through a shell command, whose output is parsed.

`Piped` is the text source behind `set_pipe_command`. One process runs for each file being read, in
a process group of its own. A plain file is its standard input; a thread copies any other file into
it. The program may be any that writes lines, and need not read to the end.

A failed process raises a `DataError` with the file's name, its exit code and the last lines of its
standard error; with bash, so does a failure within a `|` of the command. Standard error of a
successful process is logged as a warning. Stopping early ends the process group, also processes
left behind. So does the death of the reader: a shell in the group waits for the end of a pipe that
only the reader holds open. The reader's deadline names the file of a program that writes nothing.
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
"""The command that starts no process."""

_PIPE_BYTES = 1 << 20
# A grandchild, so that `wait` in the command does not wait for it.
_WATCHED = '((read _ <&{}; kill -KILL 0) >/dev/null 2>&1 &); eval "$1"'
_SHOWN_LINES, _LINE_BYTES = 5, 500


class Piped:
    """Each file through `command`, for one reader; a stopped one cannot start again.

    Any thread may ask for blocks, and any other may stop them all.
    """

    def __init__(self, command: str) -> None:
        self._command = command
        self._running: set[_Process] = set()
        self._stopped = False
        self._lock = threading.Lock()

    def name(self, path: DataFile) -> str:
        return f"{path} | {self._command}"

    def blocks(self, path: DataFile, start: int = 0) -> Blocks:
        """Yield the output of the command for a file, behind its first `start` bytes; `stop` ends
        it early, without an error."""
        if isinstance(path, FilePart):
            raise ConfigError(
                f"a pipe command takes whole files, not {path}.", hint="Leave the command out."
            )
        with open_text(path) as file, self._process(file, self.name(path)) as process:
            skip(process.output, start, self.name(path))
            yield from cut(process.output, self.name(path))
            process.finish()

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
    """One process; if `_ended`, its exit code comes from `end`."""

    def __init__(self, command: str, file: IO[bytes], name: str) -> None:
        self._name, self._file = name, file
        self._ended = False
        self._crashes = CrashReport()
        self._stderr_lines: deque[str] = deque(maxlen=_SHOWN_LINES)
        plain = isinstance(file, io.FileIO)
        dies_with_us, self._lifeline = os.pipe()
        self._child = subprocess.Popen(
            [*_shell(), _WATCHED.format(dies_with_us), "sh", command],
            pass_fds=[dies_with_us],
            bufsize=0,
            pipesize=_PIPE_BYTES,
            stdin=file if plain else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        os.close(dies_with_us)
        assert self._child.stdout is not None
        self.output = self._child.stdout
        self._threads = [start_thread(self._read_stderr, "data-pipe-stderr", self._crashes)]
        if not plain:
            self._threads.append(start_thread(self._copy, "data-pipe-stdin", self._crashes))

    def finish(self) -> None:
        """Wait for the exit code after the output ended; raises `DataError` unless it is 0."""
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
        if self._stderr_lines:
            log.warning("%s: %s", self._name, self._last_lines())

    def end(self) -> None:
        """Kill the process and all processes it started."""
        self._ended = True
        self._kill()

    def close(self) -> None:
        self.end()
        self._reap()
        os.close(self._lifeline)
        self.output.close()

    def _kill(self) -> None:
        if self._child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)

    def _reap(self) -> int:
        """Wait for the process, then end processes it left behind, which may hold its pipes open.

        In this order: until the exit code is collected, the group's number is not reused.
        """
        if self._child.returncode is None:
            os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOWAIT)
            self._kill()
        code = self._child.wait()
        for thread in self._threads:
            thread.join()
        return code

    def _copy(self) -> None:
        """Copy the file into the process, which may stop reading before its end."""
        buffer = memoryview(bytearray(_PIPE_BYTES))
        into = io.BufferedWriter(cast("io.FileIO", self._child.stdin))
        with contextlib.suppress(BrokenPipeError), into:
            while got := read_some(self._file, buffer, self._name):
                into.write(buffer[:got])

    def _read_stderr(self) -> None:
        with io.BufferedReader(cast("io.FileIO", self._child.stderr)) as stream:
            while line := stream.readline(_LINE_BYTES):
                if text := line.decode("utf-8", "backslashreplace").rstrip():
                    self._stderr_lines.append(text)

    def _last_lines(self) -> str:
        if not self._stderr_lines:
            return "It wrote nothing to its standard error."
        return "Its standard error ends:\n" + "\n".join(f"  {line}" for line in self._stderr_lines)


def _shell() -> list[str]:
    bash = shutil.which("bash")
    return [bash, "-o", "pipefail", "-c"] if bash else ["/bin/sh", "-c"]


def _ending(code: int) -> str:
    return f"ended with exit code {code}" if code > 0 else f"was killed by signal {-code}"
