"""A process that a runner has started: its output, its result file and its end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from psrt.launch.processes import die_with_parent
from psrt.launch.runners.messages import Message, text_of

_CHUNK_BYTES = 65536


class Receiver(Protocol):
    """Takes messages of a process, such as a runner's uplink."""

    def send(self, kind: str, **fields: Any) -> None: ...


class Started:
    """A process by a `start` message; it never outlives the runner.

    The path `result` of the message is that of the launcher: here it becomes the file `result`.
    Raises `OSError` if it cannot be started.
    """

    def __init__(
        self, message: Message, directory: Path, result: Path, environ: Mapping[str, str]
    ) -> None:
        self.child = str(message["child"])
        self._result, self._seen = result, ""
        result.unlink(missing_ok=True)
        arguments = [str(result) if a == message["result"] else a for a in message["arguments"]]
        self._popen = subprocess.Popen(
            arguments,
            env={**environ, **message["variables"]},
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
            preexec_fn=die_with_parent,
        )
        assert self._popen.stdout is not None
        assert self._popen.stderr is not None
        self.streams = {self._popen.stdout.fileno(): 1, self._popen.stderr.fileno(): 2}
        for descriptor in self.streams:
            os.set_blocking(descriptor, False)

    @property
    def pid(self) -> int:
        return self._popen.pid

    def send(self, number: int) -> None:
        self._popen.send_signal(number)

    def kill(self) -> None:
        """End it and all processes of its group, and wait for it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()

    def pass_on(self, uplink: Receiver) -> list[int]:
        """Send output and result so far, and the end; returns descriptors that have ended."""
        code = self._popen.poll()  # before reading: output before the end is read below
        over = [descriptor for descriptor in self.streams if self._copy(descriptor, uplink)]
        if (text := self._text()) != self._seen:
            self._seen = text
            uplink.send("result", child=self.child, text=text)
        if code is not None:
            uplink.send("ended", child=self.child, code=code)
            over = list(self.streams)
        return over

    def close(self) -> None:
        for pipe in (self._popen.stdout, self._popen.stderr):
            assert pipe is not None
            pipe.close()

    @property
    def has_ended(self) -> bool:
        return self._popen.returncode is not None

    def _copy(self, descriptor: int, uplink: Receiver) -> bool:
        """Send what a stream has now; returns True at its end.

        While the process runs that is one chunk, so that one that writes much keeps nobody waiting.
        """
        try:
            while chunk := os.read(descriptor, _CHUNK_BYTES):
                stream, text = self.streams[descriptor], text_of(chunk)
                uplink.send("output", child=self.child, stream=stream, text=text)
                if not self.has_ended:
                    return False
        except BlockingIOError:
            return False
        return True

    def _text(self) -> str:
        try:
            return self._result.read_text(encoding="utf-8")
        except FileNotFoundError:
            return self._seen  # a pserver that ends removes its ready file
