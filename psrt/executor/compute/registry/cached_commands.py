"""Steps that append to a command list, with a cache of their last commands.

To read shapes and addresses and record commands takes Python 13 µs an op, with the interpreter's
lock, for which other threads wait. In most steps all arrays, and so the commands, are those of an
earlier step: memory is reused, and parameters from pservers alternate between a few sets of arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from psrt.core.types import Array
from psrt.executor.memory import Cell, Scratch
from psrt.kernels.ops import Commands, EagerBackend

Step: TypeAlias = Callable[[], None]

MOST_REMEMBERED = 8
"""Parameters from pservers are in one of up to four sets of arrays, gradients in one of two."""

_MISSES, _REST = MOST_REMEMBERED + 2, 64
"""After `_MISSES` consecutive steps with new arrays, the next `_REST` steps are not cached."""


class _Memory(NamedTuple):
    """The commands of a step for `arrays`, which write `results`."""

    arrays: list[Array | None]
    results: list[Array]
    note: Commands


class CachedCommands:
    """A step that appends commands to a list: `record` reads shapes and addresses, not values.

    One call executes the commands of consecutive steps of a thread, see `StepSequence`. Commands
    must depend only on the arrays in the cells `read`, the memory of those `written` and that of
    `scratch`: while these are unchanged, cached commands are used. Steps without inputs are never
    cached.
    """

    def __init__(
        self,
        record: Callable[[EagerBackend], None],
        new_list: Callable[[], EagerBackend],
        read: Sequence[Cell] = (),
        written: Sequence[Cell] = (),
        scratch: Scratch | None = None,
    ) -> None:
        self.new_list = new_list
        self._record, self._read, self._written, self._scratch = record, read, written, scratch
        self._rest = 0  # steps that are not to be cached
        self._misses = 0
        self.forget()

    def __call__(self) -> None:
        commands = self.new_list()
        self.append_to(commands)
        commands.execute()

    def append_to(self, commands: EagerBackend) -> None:
        """Append the commands of the step."""
        if self._rest or not self._read:
            self._rest = max(0, self._rest - 1)
            self._record(commands)
            return
        arrays = self._held()
        known = self._memories.get(tuple(map(id, arrays)))
        if known is not None and self._is_written_to(known.results):
            self._misses = 0
            self._write_again(known.results)
            commands.append(known.note)
        else:
            self._record_and_cache(commands)

    def forget(self) -> None:
        """Drop cached commands and the arrays they keep alive."""
        self._memories: dict[tuple[int, ...], _Memory] = {}  # by identities of arrays it keeps

    def _record_and_cache(self, commands: EagerBackend) -> None:
        self._misses += 1
        if self._misses > _MISSES:
            self._misses, self._rest = 0, _REST
            self.forget()
            self._record(commands)
            return
        begin = commands.position()
        self._record(commands)
        note = commands.commands_since(begin)
        if note is not None:
            results = [cell.value for cell in self._written]
            self._keep(_Memory(self._held(), results, note))

    def _keep(self, memory: _Memory) -> None:
        """Cache commands; replaces those for these arrays, or else the oldest."""
        key = tuple(map(id, memory.arrays))
        self._memories.pop(key, None)
        if len(self._memories) == MOST_REMEMBERED:
            del self._memories[next(iter(self._memories))]
        self._memories[key] = memory

    def _is_written_to(self, results: Sequence[Array]) -> bool:
        """True if the written cells would reserve these arrays."""
        pairs = zip(self._written, results, strict=True)
        return all(cell.would_hand_out(array) for cell, array in pairs)

    def _write_again(self, results: Sequence[Array]) -> None:
        for cell, array in zip(self._written, results, strict=True):
            cell.value = array

    def _held(self) -> list[Array | None]:
        """The arrays that determine the commands."""
        held: list[Array | None] = [cell.value for cell in self._read]
        held += [cell.memory.owner for cell in self._written]
        if self._scratch is not None:
            held.append(self._scratch.owner)
        return held


class StepSequence:
    """Runs steps in order, and executes the commands of consecutive steps in one call."""

    def __init__(self) -> None:
        self._commands: EagerBackend | None = None

    def run(self, step: Step) -> None:
        """Run a step, or append its commands, executed before the next plain step or by `end`."""
        if isinstance(step, CachedCommands):
            self._commands = self._commands or step.new_list()
            step.append_to(self._commands)
            return
        self.end()
        step()

    def end(self) -> None:
        """Execute the remaining commands."""
        if self._commands is not None:
            self._commands.execute()
