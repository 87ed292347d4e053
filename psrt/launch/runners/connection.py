"""A runner, as its launcher has it: a link, the processes there, and the loss of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from psrt.launch.outputs import LineSplitter
from psrt.launch.plan import ChildId, Command
from psrt.launch.runners.links import Link
from psrt.launch.runners.messages import message_in, packed
from psrt.launch.runners.remote_child import RemoteChild


class RunnerConnection:
    """The runner at `name`, a host; pservers there listen on `address`.

    `is_here` is True once the runner has reported; `lost` is the reason once the link has ended.
    """

    def __init__(self, name: str, link: Link, address: str = "") -> None:
        self.name, self.link, self.address = name, link, address
        self.is_here = self._is_ending = False
        self.lost = ""
        self._lines = LineSplitter()
        self._children: dict[str, RemoteChild] = {}

    def start(
        self, command: Command, now: float, say: Callable[[str], None], **fields: Any
    ) -> RemoteChild:
        """Start a process; `fields` are those of the message beside the command's."""
        child = RemoteChild(command, self.name, now, say, self._signal)
        self._children[str(command.child)] = child
        arguments, result = list(command.arguments), str(command.result)
        self.send("start", child=str(child.child), arguments=arguments, result=result, **fields)
        if self.lost:
            child.lose(self.lost)
        return child

    def send(self, kind: str, **fields: Any) -> None:
        """Send a message; does nothing once the runner is lost or ending."""
        if self.lost or self._is_ending:
            return
        try:
            self.link.send(packed(kind, **fields))
        except OSError as error:
            self._lose(str(error))

    def end(self) -> None:
        """End the runner and its processes, of which no more is reported."""
        self._children.clear()
        self._is_ending = True
        self.link.end()

    def receive(self) -> None:
        """Handle what has arrived."""
        if self.lost:
            return
        try:
            chunk = self.link.receive()
            for line in self._lines.feed(chunk or b""):
                self._handle(line)
        except (OSError, ValueError) as error:
            self._lose(str(error))
            return
        if chunk is None:
            self._lose("the connection ended")

    def _handle(self, line: bytes) -> None:
        try:
            message = message_in(line)
        except ValueError:
            if self.is_here:
                raise
            return  # a greeting of the host's shell
        if message["kind"] == "here":
            self.is_here = True
            self.address = self.address or str(message["address"])
        elif (child := self._children.get(str(message.get("child")))) is not None:
            child.handle(message)

    def _signal(self, child: ChildId, number: int) -> None:
        self.send("signal", child=str(child), number=number)

    def _lose(self, why: str) -> None:
        words = self.link.last_words()
        self.lost = f"host {self.name} was lost: {why}" + (f"\n{words}" if words else "")
        for child in self._children.values():
            child.lose(self.lost)
