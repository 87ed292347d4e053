"""A process on another host, as its launcher has it: the events of its runner, in files here."""

from __future__ import annotations

import signal
from collections.abc import Callable

from psrt.core import whole_file
from psrt.launch.plan import TRAINER, ChildId, Command
from psrt.launch.reported_child import ReportedChild
from psrt.launch.runners.messages import Message, bytes_of

LOST = 255
"""The exit code of a process whose host was lost, as that of `ssh`."""

SETTLE_S = 1.0
"""Time after which the failure of a trainer counts: if a pserver has failed first, its host may
report that later, and the pserver is the cause."""


class RemoteChild(ReportedChild):
    """A process that a runner starts; `send_signal` passes a number of a signal to the runner."""

    def __init__(
        self,
        command: Command,
        host: str,
        now: float,
        say: Callable[[str], None],
        send_signal: Callable[[ChildId, int], None],
    ) -> None:
        super().__init__(command, now, say)
        self.host, self._send_signal = host, send_signal
        self._ended_at: float | None = None

    def ended_at(self, now: float) -> float | None:
        if self._ended_with is None:
            return None
        self._ended_at = now if self._ended_at is None else self._ended_at
        may_be_victim = self.child.role == TRAINER and self._ended_with > 0
        return None if may_be_victim and now - self._ended_at < SETTLE_S else self._ended_at

    def send(self, number: signal.Signals) -> None:
        if not self.has_ended:
            self._send_signal(self.child, int(number))

    def handle(self, message: Message) -> None:
        """Take over an event of the runner."""
        match message["kind"]:
            case "started":
                self.pid = int(message["pid"])
            case "output":
                self.append(bytes_of(message["text"]), is_said=int(message["stream"]) == 1)
            case "result":
                whole_file.write(self.command.result, str(message["text"]))
            case "ended":
                self.end(int(message["code"]))

    def lose(self, why: str, code: int = LOST) -> None:
        """End it as lost, unless it has ended; `why` becomes the end of its log."""
        if not self.has_ended:
            self.append(f"psrt: {why}\n".encode(), is_said=False)
            self.end(code)
