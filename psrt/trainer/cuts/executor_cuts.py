"""The part of a user's own loop in cuts: where it goes on, and what outlives a step.

A position has the steps of the executor, by which random numbers are drawn, counters of metrics and
running statistics in the scope, and a text of the user's. `begin` restores all of it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

from psrt.communicator.base import Beginning, Communicator, Position, no_position
from psrt.core.errors import DataError, PsrtError
from psrt.core.threads import CrashReport, start_thread
from psrt.executor.memory import Scope
from psrt.graph.program import Program
from psrt.trainer.cuts.scope_values import ScopeValues
from psrt.trainer.inputs import PreparedBatch, kept_of, plain_of, redealing

_VERSION = 1


class Resumed(NamedTuple):
    """The place at which an executor goes on; `cut` is a number, 0 = the job began anew.

    `steps` were trained before it; `batches` of them in the pass of `run_from` that it interrupted.
    `note` is the user's text.
    """

    cut: int = 0
    steps: int = 0
    batches: int = 0
    note: str = ""


class ExecutorCuts:
    """Position of one executor; the training thread calls all methods.

    `resumed` is where it began, known once it is connected. Set `note` before a step to find it
    there after a restart: for example a place in the data.
    """

    def __init__(self, program: Program, scope: Scope) -> None:
        self._values = ScopeValues(program, scope)
        self.resumed = Resumed()
        self.steps = 0
        self.note = ""
        self._batches = 0
        self._taken = threading.Event()

    def begin(self, found: Beginning) -> Position:
        """Go on at the position of a cut, if the job began with one.

        With another number of trainers there is none: the loop begins anew, with `resumed.cut`.

        Raises `DataError` for the position of a trainer that was no such executor.
        """
        if not found.cut:
            return no_position
        steps, batches, note = _read(found.position)
        self.resumed, self.steps, self.note = Resumed(found.cut, steps, batches, note), steps, note
        self._values.restore(kept_of(found.position))
        return lambda: found.position

    def begin_pass(self, first: int) -> None:
        """Count batches of a pass from `first` on."""
        self._batches = first

    def end_pass(self) -> None:
        """Count steps outside of passes from now on."""
        self._batches = 0

    def first_position(self) -> Position:
        """The position before the next step; it has the `note` of the time of a cut."""
        return self._here(lambda: self.note)

    def position_after(self, fetched: list[Any]) -> Position:
        """The position after a step that no pass has."""
        self.steps, note = self.steps + 1, self.note
        return self._here(lambda: note)

    def position_in_pass(
        self, batch: PreparedBatch, following: PreparedBatch | None, fetched: list[Any]
    ) -> Position:
        """The position after a step of a pass."""
        self._batches += 1
        return self.position_after(fetched)

    def _here(self, note: Callable[[], str]) -> Position:
        arrays = self._values.arrays()
        facts = {"psrt_executor": _VERSION, "steps": self.steps, "batches": self._batches}
        return lambda: json.dumps({**facts, "note": note(), "kept": plain_of(arrays)})

    def make(
        self, communicator: Communicator, round: Callable[[], None] | None, timeout_s: float
    ) -> int:
        """Ask for a cut and wait for it; returns its number.

        In Sync `round` joins a round, until this trainer has taken part.
        """
        self._taken.clear()
        behind = communicator.taken_cut
        communicator.on_cut(lambda number: self._taken.set())
        asked: Future[int] = Future()

        def ask() -> None:
            try:
                asked.set_result(communicator.request_cut(timeout_s, behind))
            except PsrtError as error:
                asked.set_exception(error)

        start_thread(ask, "cut", CrashReport(asked.set_exception))
        while round is not None and not self._taken.is_set() and not asked.done():
            round()
        with communicator.at_rest():
            return asked.result()


def note_of(position: str) -> str:
    """The user's text in a position, "" without one."""
    if position in ("", redealing.COMPLETED):
        return ""
    return _read(position)[2]


def _read(position: str) -> tuple[int, int, str]:
    if position in ("", redealing.COMPLETED):  # it took no step
        return 0, 0, ""
    try:
        found = json.loads(position)
        if found["psrt_executor"] != _VERSION:
            raise KeyError("psrt_executor")
        return int(found["steps"]), int(found["batches"]), str(found["note"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            "the cut is of a trainer that was no ConnectedExecutor of this version: its position "
            f"is {position[:80]!r}. Nothing was trained.",
            hint="Resume with the command or script that wrote the cut.",
        ) from error
