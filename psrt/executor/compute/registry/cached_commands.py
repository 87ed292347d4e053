"""Steps that are noted on tapes, and what they noted last.

To look at shapes and addresses and note what to do takes Python 13 µs an op, with the interpreter's
lock, for which other threads wait. In most steps all arrays are those of one of the steps before,
and so is what there is to note: memory is used again, and parameters that come back from pservers
come in a few sets of arrays, in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from psrt.core.types import Array
from psrt.executor.memory import Cell, Scratch
from psrt.kernels.ops import EagerBackend, Note

Step: TypeAlias = Callable[[], None]

MOST_REMEMBERED = 8
"""Parameters that come back from pservers are in one of up to four sets of arrays, gradients that
leave for them in one of two."""

_MISSES, _REST = MOST_REMEMBERED + 2, 64
"""After so many steps in a row with other arrays than before, none are remembered for a while."""


class _Memory(NamedTuple):
    """What a step noted with these `arrays`: it lies in the cells written, as `results`."""

    arrays: list[Array | None]
    results: list[Array]
    note: Note


class CachedCommands:
    """A step that is a part of a tape: `note` looks at shapes alone and says what to do.

    Such steps that follow each other in a thread are noted on one tape and played by one call, see
    `StepSequence`. What is noted must follow from the arrays in the cells `read`, the memory of
    those `written` and that of `scratch`: as long as these are the same, it is noted again without
    asking. Who reads nothing is always asked.
    """

    def __init__(
        self,
        note: Callable[[EagerBackend], None],
        new_tape: Callable[[], EagerBackend],
        read: Sequence[Cell] = (),
        written: Sequence[Cell] = (),
        scratch: Scratch | None = None,
    ) -> None:
        self.new_tape = new_tape
        self._note, self._read, self._written, self._scratch = note, read, written, scratch
        self._rest = 0  # steps that are not to be remembered
        self._misses = 0
        self.forget()

    def __call__(self) -> None:
        tape = self.new_tape()
        self.note(tape)
        tape.play()

    def note(self, tape: EagerBackend) -> None:
        """Note it on a tape."""
        if self._rest or not self._read:
            self._rest = max(0, self._rest - 1)
            self._note(tape)
            return
        arrays = self._held()
        known = self._memories.get(tuple(map(id, arrays)))
        if known is not None and self._is_written_to(known.results):
            self._misses = 0
            self._write_again(known.results)
            tape.repeat(known.note)
        else:
            self._remember(tape)

    def forget(self) -> None:
        """Let go of the arrays of earlier steps."""
        self._memories: dict[tuple[int, ...], _Memory] = {}  # by the identities of arrays it keeps

    def _remember(self, tape: EagerBackend) -> None:
        self._misses += 1
        if self._misses > _MISSES:
            self._misses, self._rest = 0, _REST
            self.forget()
            self._note(tape)
            return
        begin = tape.mark()
        self._note(tape)
        note = tape.since(begin)
        if note is not None:
            results = [cell.value for cell in self._written]
            self._keep(_Memory(self._held(), results, note))

    def _keep(self, memory: _Memory) -> None:
        """In the place of what was noted with the same arrays, or else of the oldest."""
        key = tuple(map(id, memory.arrays))
        self._memories.pop(key, None)
        if len(self._memories) == MOST_REMEMBERED:
            del self._memories[next(iter(self._memories))]
        self._memories[key] = memory

    def _is_written_to(self, results: Sequence[Array]) -> bool:
        """True if the cells written would lie where they lay."""
        pairs = zip(self._written, results, strict=True)
        return all(cell.would_hand_out(array) for cell, array in pairs)

    def _write_again(self, results: Sequence[Array]) -> None:
        for cell, array in zip(self._written, results, strict=True):
            cell.value = array

    def _held(self) -> list[Array | None]:
        """What there is to note follows from these."""
        held: list[Array | None] = [cell.value for cell in self._read]
        held += [cell.memory.owner for cell in self._written]
        if self._scratch is not None:
            held.append(self._scratch.owner)
        return held


class StepSequence:
    """Runs steps one after the other, those in a row that a tape takes by one call."""

    def __init__(self) -> None:
        self._tape: EagerBackend | None = None

    def run(self, step: Step) -> None:
        """Run a step, or note it: it is done by the next one that computes at once, or by `end`."""
        if isinstance(step, CachedCommands):
            self._tape = self._tape or step.new_tape()
            step.note(self._tape)
            return
        self.end()
        step()

    def end(self) -> None:
        """Do what is left to do."""
        if self._tape is not None:
            self._tape.play()
