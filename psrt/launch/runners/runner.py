"""A runner: starts processes on its host for a launcher, and ends with it.

It ends, and kills its processes, when the launcher closes the connection, when that is silent for
`SILENCE_S`, and on SIGTERM and SIGHUP, which SSH servers and schedulers send.
"""

from __future__ import annotations

import selectors
import shutil
import signal
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from psrt.core.clock import Clock
from psrt.launch.runners.messages import SILENCE_S, Message, files_of
from psrt.launch.runners.started import Started
from psrt.launch.runners.uplink import Uplink

_TURN_S = 0.1
_CANNOT_START = 127  # as of a shell


class Runner:
    """The processes of one launch on this host; `environ` is theirs, below that of messages."""

    def __init__(self, uplink: Uplink, environ: Mapping[str, str], clock: Clock) -> None:
        self._uplink, self._environ, self._clock = uplink, environ, clock
        self._directory = Path(tempfile.mkdtemp(prefix="psrt-launch-"))
        self._job = self._directory / "job"
        self._processes: dict[str, Started] = {}
        self._selector = selectors.DefaultSelector()
        self._heard_at = clock.now()

    def serve(self) -> None:
        """Follow the launcher until it ends."""
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _end)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the launcher's to handle
        try:
            self._uplink.send("here", host=socket.gethostname(), address=self._uplink.host)
            self._selector.register(self._uplink.read_fd, selectors.EVENT_READ)
            while self._turn():
                pass
        except BrokenPipeError:
            pass  # the launcher is gone
        finally:
            self._close()

    def _turn(self) -> bool:
        """Wait for messages and output once; returns False at the end of the launcher."""
        ready = {key.fd for key, _ in self._selector.select(_TURN_S)}
        if self._uplink.read_fd in ready:
            messages = self._uplink.receive()
            if messages is None:
                return False
            self._heard_at = self._clock.now()
            for message in messages:
                self._follow(message)
        for process in list(self._processes.values()):
            self._pass_on(process)
        return self._clock.now() - self._heard_at < SILENCE_S

    def _follow(self, message: Message) -> None:
        if message["kind"] == "files":
            self._unpack(message["files"])
        elif message["kind"] == "start":
            self._start(message)
        elif message["kind"] == "signal" and message["child"] in self._processes:
            self._processes[message["child"]].send(message["number"])

    def _unpack(self, files: Mapping[str, str]) -> None:
        for name, content in files_of(files).items():
            path = self._job / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def _start(self, message: Message) -> None:
        child = str(message["child"])
        directory = Path(message["directory"]) if message["directory"] else self._job
        result = self._directory / f"{child}.json"
        try:
            process = Started(message, directory, result, self._environ)
        except OSError as error:
            self._refuse(child, directory, error)
            return
        self._processes[child] = process
        for descriptor in process.streams:
            self._selector.register(descriptor, selectors.EVENT_READ)
        self._uplink.send("started", child=child, pid=process.pid)

    def _refuse(self, child: str, directory: Path, error: OSError) -> None:
        hint = "" if directory.is_dir() else "; share that directory, or send files by --bring"
        text = f"psrt cannot start {child} in {directory}: {error.strerror}: {error.filename}{hint}"
        self._uplink.send("output", child=child, stream=2, text=f"{text}\n")
        self._uplink.send("ended", child=child, code=_CANNOT_START)

    def _pass_on(self, process: Started) -> None:
        for descriptor in process.pass_on(self._uplink):
            del process.streams[descriptor]
            self._selector.unregister(descriptor)
        if process.has_ended:
            process.close()
            del self._processes[process.child]

    def _close(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.close()
        self._selector.close()
        shutil.rmtree(self._directory, ignore_errors=True)


def _end(number: int, frame: object) -> NoReturn:
    raise SystemExit(128 + number)
