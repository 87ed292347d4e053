"""An actor of Ray that runs one process of a launch: its messages are those of a runner."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from psrt.config.load import environment
from psrt.core.extras import required
from psrt.launch.runners import Message, Started

FREE_AFTER_S = 5.0
"""Time without a poll after which a launcher is taken for dead: it polls several times a second."""


class ProcessActor:
    """At most one process at a time, which ends with the actor.

    `files` lie in a directory of the actor's own, where the process runs; without any it runs in
    the directory of its message. Messages are kept until they are polled.
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._own = Path(tempfile.mkdtemp(prefix="psrt-launch-"))
        self._process: Started | None = None
        self._messages: list[Message] = []
        self._facts: list[Message] = []  # those that another launcher needs to go on
        self._polled_at = time.monotonic()
        for name, content in files.items():
            path = self._own / "job" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def address(self) -> str:
        """Return the address of this node."""
        ray = required("ray", "ray", "an actor of psrt")
        return str(ray.util.get_node_ip_address())

    def start(self, message: Message) -> None:
        """Start a process; one that cannot be started is reported as ended."""
        directory = Path(message["directory"]) if message["directory"] else self._own / "job"
        self._facts.clear()
        try:
            result = self._own / f"{message['child']}.json"
            self._process = Started(message, directory, result, environment())
        except OSError as error:
            text = f"psrt cannot start it in {directory}: {error.strerror}: {error.filename}\n"
            self.send("output", stream=2, text=text)
            self.send("ended", code=127)
            return
        self.send("started", pid=self._process.pid)

    def send(self, kind: str, **fields: Any) -> None:
        """Keep a message of the process for the launcher."""
        message = {"kind": kind, **fields}
        self._messages.append(message)
        if kind in ("started", "result"):
            self._facts = [each for each in self._facts if each["kind"] != kind] + [message]

    def poll(self) -> list[Message]:
        """Return what has happened since the last call."""
        self._polled_at = time.monotonic()
        if self._process is not None:
            self._process.pass_on(self)
            if self._process.has_ended:
                self._process.close()
                self._process = None
        messages, self._messages = self._messages, []
        return messages

    def adopt(self) -> list[Message] | None:
        """Go on for another launcher; returns the facts of the process, or None if none runs.

        Raises `RuntimeError` while an earlier launcher polls.
        """
        if time.monotonic() - self._polled_at < FREE_AFTER_S:
            raise RuntimeError("another launch uses it")
        self.poll()
        return None if self._process is None else list(self._facts)

    def signal(self, number: int) -> None:
        if self._process is not None:
            self._process.send(number)

    def end(self) -> None:
        """End the process and remove its files; the actor is of no more use."""
        if self._process is not None:
            self._process.kill()
            self._process.close()
        shutil.rmtree(self._own, ignore_errors=True)
