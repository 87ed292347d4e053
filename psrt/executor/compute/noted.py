"""Steps that are noted on tapes, and what they noted last.

To look at shapes and addresses and note what to do takes Python 13 µs an op, with the interpreter's
lock, for which other threads wait. In most steps all arrays are those of the step before, and so is
what there is to note.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import TypeAlias

from psrt.core.types import Array
from psrt.executor.cells import Cell, Scratch
from psrt.kernels.tape import AtOnce, Note

Step: TypeAlias = Callable[[], None]

_MISSES, _REST = 3, 64
"""After so many steps in a row with other arrays than before, none are remembered for a while."""


class Noted:
    """A step that is a part of a tape: `note` looks at shapes alone and says what to do.

    Such steps that follow each other in a thread are noted on one tape and played by one call, see
    `InTurn`. What is noted must follow from the arrays in the cells `read`, the memory of those
    `written` and that of `scratch`: as long as these are the same, it is noted again without
    asking. Who reads nothing is always asked.
    """

    def __init__(
        self,
        note: Callable[[AtOnce], None],
        new_tape: Callable[[], AtOnce],
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

    def note(self, tape: AtOnce) -> None:
        """Note it on a tape."""
        if self._rest or not self._read:
            self._rest = max(0, self._rest - 1)
            self._note(tape)
        elif self._last is not None and self._is_as_before():
            self._misses = 0
            self._write_again()
            tape.repeat(self._last)
        else:
            self._remember(tape)

    def forget(self) -> None:
        """Let go of the arrays of the last step."""
        self._arrays: list[Array | None] = []
        self._results: list[Array] = []
        self._last: Note | None = None

    def _remember(self, tape: AtOnce) -> None:
        self._misses += 1
        if self._misses > _MISSES:
            self._misses, self._rest = 0, _REST
            self.forget()
            self._note(tape)
            return
        begin = tape.mark()
        self._note(tape)
        self._last, self._arrays = tape.since(begin), self._held()
        self._results = [cell.value for cell in self._written]

    def _is_as_before(self) -> bool:
        if not all(map(is_, self._held(), self._arrays)):
            return False
        pairs = zip(self._written, self._results, strict=True)
        return all(cell.would_hand_out(array) for cell, array in pairs)

    def _write_again(self) -> None:
        for cell, array in zip(self._written, self._results, strict=True):
            cell.value = array

    def _held(self) -> list[Array | None]:
        held: list[Array | None] = [cell.value for cell in self._read]
        if self._scratch is not None:
            held.append(self._scratch.owner)
        return held


class InTurn:
    """Runs steps one after the other, those in a row that a tape takes by one call."""

    def __init__(self) -> None:
        self._tape: AtOnce | None = None

    def run(self, step: Step) -> None:
        """Run a step, or note it: it is done by the next one that computes at once, or by `end`."""
        if isinstance(step, Noted):
            self._tape = self._tape or step.new_tape()
            step.note(self._tape)
            return
        self.end()
        step()

    def end(self) -> None:
        """Do what is left to do."""
        if self._tape is not None:
            self._tape.play()
