"""A process on another host, as its launcher has it: the events of its runner, in files here."""

from __future__ import annotations

import signal
from collections.abc import Callable

from psrt.core import whole_file
from psrt.launch.outputs import last_lines
from psrt.launch.plan import FOLLOWED, TRAINER, ChildId, Command
from psrt.launch.runners.messages import LineSplitter, Message, bytes_of

LOST = 255
"""The exit code of a process whose host was lost, as that of `ssh`."""

SETTLE_S = 1.0
"""Time after which the failure of a trainer counts: if a pserver has failed first, its host may
report that later, and the pserver is the cause."""


class RemoteChild:
    """A process that a runner starts; its log and its result file are those of the command, here.

    `say` receives the standard output of the process that is followed, line by line; `send_signal`
    passes a number of a signal to the runner.
    """

    def __init__(
        self,
        command: Command,
        host: str,
        now: float,
        say: Callable[[str], None],
        send_signal: Callable[[ChildId, int], None],
    ) -> None:
        self.command, self.host = command, host
        self.code: int | None = None
        self.seconds, self.endpoint, self.pid = 0.0, "", 0
        self._started_at = now
        self._say, self._send_signal = say, send_signal
        self._ended_with: int | None = None
        self._ended_at: float | None = None
        self._lines = LineSplitter()
        command.result.unlink(missing_ok=True)  # files of an earlier run
        if not command.keeps_log:
            command.log.unlink(missing_ok=True)
        command.log.touch()

    @property
    def child(self) -> ChildId:
        return self.command.child

    @property
    def log(self) -> str:
        return str(self.command.log)

    def has_just_ended(self, now: float) -> bool:
        if self.code is not None or self._ended_with is None:
            return False
        self._ended_at = now if self._ended_at is None else self._ended_at
        if self.child.role == TRAINER and self._ended_with > 0 and now - self._ended_at < SETTLE_S:
            return False
        self.code, self.seconds = self._ended_with, self._ended_at - self._started_at
        return True

    def send(self, number: signal.Signals) -> None:
        if not self.has_ended:
            self._send_signal(self.child, int(number))

    def last_lines(self) -> str:
        return last_lines(self.command.log)

    def handle(self, message: Message) -> None:
        """Take over an event of the runner."""
        match message["kind"]:
            case "started":
                self.pid = int(message["pid"])
            case "output":
                self._write(bytes_of(message["text"]), int(message["stream"]))
            case "result":
                whole_file.write(self.command.result, str(message["text"]))
            case "ended":
                self._end(int(message["code"]))

    @property
    def has_ended(self) -> bool:
        """True once its end was reported."""
        return self._ended_with is not None

    def lose(self, why: str, code: int = LOST) -> None:
        """End it as lost, unless it has ended; `why` becomes the end of its log."""
        if not self.has_ended:
            self._write(f"psrt: {why}\n".encode(), 2)
            self._end(code)

    def _write(self, raw: bytes, stream: int) -> None:
        with self.command.log.open("ab") as log:
            log.write(raw)
        if stream == 1 and self.child == FOLLOWED:
            for line in self._lines.feed(raw):
                self._say(line.decode(errors="replace"))

    def _end(self, code: int) -> None:
        self._ended_with = code
        if self._lines.rest:
            self._say(self._lines.rest.decode(errors="replace"))
