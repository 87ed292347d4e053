"""Children of a launch and the engines that start them, as protocols.

An engine starts processes: by the system of this host, over SSH, by `mpirun` or `srun`. The plan,
the supervision and the report are the same for all of them.
"""

from __future__ import annotations

import signal
from typing import Protocol

from psrt.launch.plan import ChildId, Command


class Child(Protocol):
    """One running or ended process; `code` is None while it runs and −n when signal n ended it.

    `endpoint` is that of a pserver, set once it serves. `log` names the log for people.
    """

    command: Command
    code: int | None
    seconds: float
    endpoint: str

    @property
    def child(self) -> ChildId: ...

    @property
    def pid(self) -> int: ...

    @property
    def host(self) -> str: ...

    @property
    def log(self) -> str: ...

    def has_just_ended(self, now: float) -> bool:
        """Return True once, at the first call after the end."""
        ...

    def send(self, number: signal.Signals) -> None:
        """Send a signal; does nothing once the process has ended."""
        ...

    def last_lines(self) -> str:
        """Return the end of the log."""
        ...


class Engine(Protocol):
    """Starts the processes of one launch; after `close` none of them runs.

    With `can_stand_by` it keeps a process ready for a killed pserver; others ignore `stand_by`.
    """

    name: str
    can_stand_by: bool

    def is_open(self) -> bool:
        """Return True once processes can be started; raises `PsrtError` if they never can."""
        ...

    def host_of(self, child: ChildId) -> str:
        """Return the address on which a pserver listens; call it once the engine is open."""
        ...

    def start(self, command: Command, now: float, takes_over: bool = False) -> Child:
        """Start a process; one that `takes_over` may be the process that stands by."""
        ...

    def stand_by(self, command: Command) -> None:
        """Start a process that waits to take the place of a killed pserver."""
        ...

    def standby_has_ended(self) -> bool:
        """Return True once, after the process that stood by has ended by itself."""
        ...

    def pump(self, timeout_s: float) -> None:
        """Wait for output of the followed process, `timeout_s` at most, and pass it on."""
        ...

    def close(self) -> None:
        """End all processes now."""
        ...
