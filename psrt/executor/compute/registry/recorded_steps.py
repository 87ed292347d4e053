"""Steps that append to a command list, and lists of steps run in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from psrt.kernels.ops import EagerBackend

Step: TypeAlias = Callable[[], None]


@dataclass(frozen=True)
class RecordedStep:
    """A step that consists of commands: `record` reads shapes and addresses, not values.

    One call executes the commands of consecutive steps of a thread, see `StepSequence`.
    """

    record: Callable[[EagerBackend], None]
    new_list: Callable[[], EagerBackend]

    def __call__(self) -> None:
        commands = self.new_list()
        self.record(commands)
        commands.execute()


class StepSequence:
    """Runs steps in order, and executes the commands of consecutive steps in one call."""

    def __init__(self) -> None:
        self._commands: EagerBackend | None = None

    def run(self, step: Step) -> None:
        """Run a step, or record its commands, executed before the next plain step or by `end`."""
        if isinstance(step, RecordedStep):
            self._commands = self._commands or step.new_list()
            step.record(self._commands)
            return
        self.end()
        step()

    def end(self) -> None:
        """Execute the remaining commands."""
        if self._commands is not None:
            self._commands.execute()
