"""A launcher's connections to runners, as pipes of a local command; SSH and MPI have their own."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from psrt.launch.outputs import last_lines
from psrt.launch.processes import die_with_parent

_CHUNK_BYTES = 65536


class Link(Protocol):
    """Bytes to and from one runner."""

    def fileno(self) -> int:
        """Return a descriptor that is readable when `receive` returns at once."""
        ...

    def send(self, raw: bytes) -> None:
        """Send bytes; raises `OSError` once the link is lost."""
        ...

    def receive(self) -> bytes | None:
        """Return what has arrived, empty if nothing has, None at the end."""
        ...

    def end(self) -> None:
        """Send the end, at which the runner ends; what it sends before that can be received."""
        ...

    def close(self) -> None:
        """Give the link up."""
        ...

    def last_words(self) -> str:
        """Return messages of the command or server that held the link; empty if there are none."""
        ...


class PipeLink:
    """Pipes to a command that runs a runner; its standard error goes to the file `log`.

    Raises `OSError` if the command cannot be started.
    """

    def __init__(self, arguments: Sequence[str], environ: Mapping[str, str], log: Path) -> None:
        self._log = log
        with log.open("wb") as errors:
            self._popen = subprocess.Popen(
                arguments,
                env=dict(environ),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                process_group=0,
                preexec_fn=die_with_parent,
            )
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._stdin, self._stdout = self._popen.stdin, self._popen.stdout
        os.set_blocking(self.fileno(), False)

    def fileno(self) -> int:
        return self._stdout.fileno()

    def send(self, raw: bytes) -> None:
        self._stdin.write(raw)
        self._stdin.flush()

    def receive(self) -> bytes | None:
        try:
            return os.read(self.fileno(), _CHUNK_BYTES) or None
        except BlockingIOError:
            return b""

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self._stdin.close()

    def close(self) -> None:
        self.end()
        if self._popen.poll() is None:
            self._popen.kill()
            self._popen.wait()
        self._stdout.close()

    def last_words(self) -> str:
        return last_lines(self._log)
