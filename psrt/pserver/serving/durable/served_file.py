"""The file by which a killed pserver recovers: what it serves, and how its job began.

Until something of its tables is durable, it names all trainers that have joined: they keep every
push that they have sent, and a process that takes the pserver's place waits for each of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from psrt.core.specs import to_plain
from psrt.pserver.checkpoints import SavedCut, served_job
from psrt.pserver.decisions import MemberState, read_spec
from psrt.rpc import pb
from psrt.storage.directory import Directory

Members = list[list[Any]]
"""`Membership.dump`."""


def beginning_with(register: pb.Register, resumed: SavedCut | None) -> dict[str, Any]:
    """The values that tables of a trainer's REGISTER begin with, as JSON."""
    return {
        "specs": [to_plain(read_spec(text)) for text in register.specs],
        "resumed": 0 if resumed is None else resumed.number,
        "warm_start": register.warm_start,
        "parameters": [to_plain(read_spec(text)) for text in register.parameters],
    }


class ServedFile:
    """The file of pserver `name`, whose tables have an `incarnation`; any thread calls this.

    `began` are facts of the job before the first push, None = they are not to be recorded.
    """

    def __init__(
        self, directory: Directory, name: str, incarnation: int, began: dict[str, Any] | None
    ) -> None:
        self._directory, self._name, self._incarnation = directory, name, incarnation
        self._began = began
        self._lock = threading.Lock()
        self._members: Members = []
        if began is None:
            served_job.record(directory, name, incarnation)

    def joined(self, members: Callable[[], Members]) -> None:
        """Record the processes of all trainers, before a newcomer pushes."""
        with self._lock:
            if self._began is None:
                return
            running = [_running(member) for member in members()]
            if running != self._members:
                self._members = running
                state = self._began["state"] | {"members": running, "is_beginning": True}
                began = self._began | {"state": state}
                served_job.record(self._directory, self._name, self._incarnation, began)

    def forget_beginning(self) -> None:
        """Drop the facts of the beginning: trainers keep only later pushes from now on."""
        with self._lock:
            if self._began is not None:
                self._began = None
                served_job.record(self._directory, self._name, self._incarnation)

    def remove(self) -> None:
        """Delete the file, and local cuts, for good: the job has ended."""
        with self._lock:
            self._began = None
            served_job.forget(self._directory, self._name)


def _running(member: list[Any]) -> list[Any]:
    """The record of a trainer; one that has completed stays until all its pushes are durable."""
    trainer, state, *others = member
    has_completed = state == MemberState.COMPLETED.value
    return [trainer, MemberState.RUNNING.value if has_completed else state, *others]
