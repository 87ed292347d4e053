"""The engine `local`: processes of this host, as children of the launcher."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from psrt.launch.plan import FOLLOWED, LOOPBACK, PSERVER, ChildId, Command, Plan
from psrt.launch.plan_text import commands_text
from psrt.launch.processes import Follower, Process, Standby


def described(plan: Plan) -> str:
    """The processes of this host and their commands, for people."""
    return commands_text(plan, lambda child: LOOPBACK)


class LocalEngine:
    """Processes of this host; pservers listen on the loopback interface."""

    name = "local"
    can_stand_by = True

    def __init__(self, say: Callable[[str], None]) -> None:
        self._follower = Follower(say)
        self._exits = ExitStack()
        self._exits.callback(self._follower.close)
        self._standby: Standby | None = None

    def is_open(self) -> bool:
        return True

    def host_of(self, child: ChildId) -> str:
        return LOOPBACK

    def start(self, command: Command, now: float, takes_over: bool = False) -> Process:
        if takes_over and command.child.role == PSERVER:
            process, self._standby = Process(command, now=now, standby=self._standby), None
        else:
            start = self._follower.start if command.child == FOLLOWED else Process
            process = start(command, now=now)
        self._exits.callback(process.close)
        return process

    def stand_by(self, command: Command) -> None:
        self._standby = Standby(command)
        self._exits.callback(self._standby.close)

    def standby_has_ended(self) -> bool:
        if self._standby is None or not self._standby.has_ended:
            return False
        self._standby = None
        return True

    def pump(self, timeout_s: float) -> None:
        self._follower.pump(timeout_s)

    def close(self) -> None:
        self._exits.close()
