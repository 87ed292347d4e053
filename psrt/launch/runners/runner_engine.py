"""An engine that starts processes by runners, which SSH, `srun` or `mpirun` have started."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from psrt.core.clock import Clock, MonotonicClock
from psrt.core.errors import JobError
from psrt.launch.children import Child
from psrt.launch.plan import ChildId, Command, Plan
from psrt.launch.runners.connection import RunnerConnection
from psrt.launch.runners.messages import BEAT_S, files_field

_END_S = 10.0


def runner_command(python: str, *arguments: str) -> list[str]:
    """Return the command of a runner for a Python with psrt, empty = this one."""
    return [python or sys.executable, "-m", "psrt.launch.runners", *arguments]


class Reach(Protocol):
    """The way to the hosts of one launch: it starts a runner on each, and connects to it."""

    def connections(self) -> list[RunnerConnection] | None:
        """Return a connection to each runner once there are all; raises `PsrtError` if never."""
        ...

    def place(self, child: ChildId) -> int:
        """Return the number of the connection for a process."""
        ...

    def close(self) -> None:
        """End the runners, if their connections have not ended them."""
        ...


class RunnerEngine:
    """Processes by the runners of a `Reach`, whose own errors name what it could not do."""

    can_stand_by = False

    def __init__(
        self,
        name: str,
        reach: Reach,
        plan: Plan,
        say: Callable[[str], None],
        clock: Clock | None = None,
    ) -> None:
        self.name = name
        self._reach, self._plan, self._say = reach, plan, say
        self._clock = clock or MonotonicClock()
        self._connections: list[RunnerConnection] = []
        self._beats_at = self._clock.now()

    def is_open(self) -> bool:
        if not self._connections:
            self._connections = self._reach.connections() or []
            for each in self._connections:
                if self._plan.files:
                    each.send("files", files=files_field(self._plan.files))
        self.pump(0.0)
        for each in self._connections:
            if each.lost:
                raise JobError(
                    f"{self.name} started no runner of psrt: {each.lost}",
                    hint="psrt must be installed on every host, for the Python that --python "
                    "names.",
                )
        return bool(self._connections) and all(each.is_here for each in self._connections)

    def host_of(self, child: ChildId) -> str:
        return self._of(child).address

    def start(self, command: Command, now: float, takes_over: bool = False) -> Child:
        directory = "" if self._plan.files else str(Path.cwd())
        variables = {**self._plan.carried, **self._plan.variables, **command.own}
        return self._of(command.child).start(
            command, now, self._say, directory=directory, variables=variables
        )

    def stand_by(self, command: Command) -> None:
        """Do nothing: processes stand by only on this host."""

    def standby_has_ended(self) -> bool:
        return False

    def pump(self, timeout_s: float) -> None:
        if (now := self._clock.now()) >= self._beats_at:
            self._beats_at = now + BEAT_S
            for each in self._connections:
                each.send("beat")
        living = [each.link for each in self._connections if not each.lost]
        select.select(living, [], [], timeout_s)
        for each in self._connections:
            each.receive()

    def close(self) -> None:
        """End all runners, which end their processes, and wait `_END_S` at most until they have."""
        for each in self._connections:
            each.end()
        deadline = self._clock.now() + _END_S
        while any(not each.lost for each in self._connections):
            if (left := deadline - self._clock.now()) <= 0:
                break
            self.pump(left)
        for each in self._connections:
            each.link.close()
        self._reach.close()

    def _of(self, child: ChildId) -> RunnerConnection:
        return self._connections[self._reach.place(child)]
