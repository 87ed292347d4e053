"""The identity of a run of training, and where one trainer is in it, as cuts have them."""

from __future__ import annotations

import secrets

from psrt.communicator.base import Beginning, Position
from psrt.executor.memory import Scope
from psrt.graph.program import Program
from psrt.trainer.cuts import ExecutorCuts, note_of


class RunPosition:
    """`run` is drawn, unless the training goes on from a cut: then it is that of the cut.

    `found` is the cut that the training began with.
    """

    def __init__(self) -> None:
        self._cuts = ExecutorCuts(Program(), Scope())
        self.found = Beginning()
        self.run = secrets.token_hex(8)

    def begin(self, found: Beginning) -> Position:
        """Begin with a cut, or anew; a `psrt.communicator.base.BeginsAt`.

        A cut before the first step names the run that trainers agree on later.
        """
        self.found = found
        self._cuts.begin(found)
        return self._cuts.first_position()

    @property
    def resumed_run(self) -> str:
        """The run of the cut; "" without one."""
        notes = (note_of(each) for each in (self.found.position, *self.found.positions))
        return next(filter(None, notes), "")

    def belong_to(self, run: str) -> None:
        """Name `run` in all positions from now on."""
        self.run = self._cuts.note = run

    def after_step(self) -> Position:
        """The position after one more step."""
        return self._cuts.position_after([])
