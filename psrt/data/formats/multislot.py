"""MultiSlot lines to batches.

A line holds, for each slot in order, `n v1 … vn`, separated by blanks or tabs; trailing blanks,
CRLF, blank lines and a missing last newline are allowed. A dense slot has exactly its size; a
ragged slot any n, also 0 (PaddlePaddle refuses 0, so its generators pad). Ids are unsigned 64-bit,
kept as int64 bit patterns; floats become the nearest float32; nan and inf are refused.

A `BatchParser` belongs to one thread. The loop is in `psrt.kernels.text.multislot_lines`; this file
provides its memory and describes malformed lines. A line is read whole or refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from psrt.core.errors import ConfigError, DataError
from psrt.core.types import I64, U8
from psrt.data.checks import batch_size_of
from psrt.data.formats.batch_arrays import BatchArrays
from psrt.data.slots import Batch, Slot
from psrt.kernels.text import multislot as kernel
from psrt.kernels.text import parse_rows
from psrt.kernels.text import text as scan

_FIRST_TIES = 64
_SHOWN_CHARACTERS = 40
_FIRST_WINDOW = 64
EXPECTED = {
    scan.BAD_ID: "an unsigned integer",
    scan.ID_TOO_LARGE: "an id of at most 64 bits",
    scan.BAD_FLOAT: "a finite number",
    scan.FLOAT_TOO_LARGE: "a number within the range of float32",
}


class BatchParser:
    """Cuts the lines of one or more files into batches of `batch_size` examples.

    Between calls, `report[ROWS]` examples of the batch under construction are in place; a batch
    that was returned is never written again.
    """

    def __init__(self, slots: Sequence[Slot], batch_size: int) -> None:
        if not slots or len({slot.name for slot in slots}) < len(slots):
            raise ConfigError(f"slots need distinct names, got {[slot.name for slot in slots]}")
        self._slots = tuple(slots)
        self._batch_size = batch_size_of(batch_size)
        self._path = ""
        self.skipping = 0
        self._report: I64 = np.zeros(kernel.REPORT_CELLS, np.int64)
        self._ties: I64 = np.empty((_FIRST_TIES, 2), np.int64)
        self._arrays = BatchArrays(self._slots, self._batch_size)

    def begin_file(self, path: str, line: int = 0) -> None:
        """Begin `path` behind its first `line` lines."""
        self._path = path
        self._report[kernel.LINES] = line

    @property
    def held(self) -> int:
        return int(self._report[kernel.ROWS])

    @property
    def line(self) -> int:
        return int(self._report[kernel.LINES])

    def skip(self, examples: int) -> None:
        """Drop the next `examples` examples, which are still parsed."""
        self.skipping += examples

    def feed(self, text: U8) -> Iterator[Batch]:
        """Parse whole lines, `text` (n,) uint8 ending in a newline; yield each batch that fills.

        Raises `DataError` naming file, line and slot; batches before that line were yielded.
        """
        report = self._report
        report[kernel.POSITION] = 0
        while self.skipping and report[kernel.POSITION] < len(text):
            self._drop(text)
        while report[kernel.POSITION] < len(text):
            self._parse(text, self._batch_size)
            if report[kernel.ROWS] == self._batch_size:
                yield self._take()
            elif report[kernel.STATUS] != scan.DONE:
                self._settle(text)

    def finish(self) -> Batch | None:
        """Return the last, smaller batch, if any examples are left."""
        return self._take() if self._report[kernel.ROWS] else None

    def _drop(self, text: U8) -> None:
        """Parse examples behind those in place; the next ones overwrite them."""
        held = self.held
        self._parse(text, min(self._batch_size, held + self.skipping))
        self.skipping -= self.held - held
        self._report[kernel.ROWS] = held
        if self._report[kernel.STATUS] != scan.DONE:
            self._settle(text)

    def _parse(self, text: U8, rows: int) -> None:
        report, arrays = self._report, self._arrays
        report[kernel.TIES] = 0
        parse_rows(
            *(text, len(text)),
            *(arrays.layout, arrays.words, arrays.offsets),
            *(self._ties, rows, report),
        )
        for position, index in self._ties[: report[kernel.TIES]]:
            arrays.words[index] = float(number_at(text, position))

    def _settle(self, text: U8) -> None:
        """Make the room that the kernel requested, or raise `DataError`."""
        status = int(self._report[kernel.STATUS])
        if status == kernel.SLOT_FULL:
            slot, count = int(self._report[kernel.SLOT]), int(self._report[kernel.COUNT])
            self._arrays.widen(slot, count, self.held)
        elif status == kernel.TIES_FULL:
            self._ties = np.empty((2 * len(self._ties), 2), np.int64)
        else:
            raise malformed(self._path, self._slots, text, self._report)

    def _take(self) -> Batch:
        batch = self._arrays.take(self.held)
        self._report[kernel.ROWS] = 0
        return batch


def malformed(path: str, slots: Sequence[Slot], text: U8, report: I64) -> DataError:
    """Return the error for the line that a kernel refused."""
    at = int(report[kernel.POSITION])
    status = int(report[kernel.STATUS])
    column = at - text[:at].tobytes().rfind(b"\n")
    where = f"{path}, line {report[kernel.LINES] + 1}, column {column}"
    found = f"found {shown_at(text, at)}"
    if status == kernel.LINE_GOES_ON:
        where += f", behind the last slot {slots[-1].name!r}"
        return DataError(f"{where}: expected the end of the line, {found}.", hint=_order(slots))
    slot = slots[int(report[kernel.SLOT])]
    expected = _expected(status, slot, int(report[kernel.VALUE]), int(report[kernel.COUNT]))
    return DataError(
        f"{where}, slot {slot.name!r}: expected {expected}, {found}.", hint=_order(slots)
    )


def _expected(status: int, slot: Slot, value: int, count: int) -> str:
    if status == kernel.WRONG_COUNT:
        return f"the number of values, which is {slot.size}"
    if status == kernel.COUNT_TOO_LARGE:
        return "a number of values that the rest of the line has room for"
    if value < 0:
        return "the number of values"
    return f"{EXPECTED.get(status, 'a value')} as value {value + 1} of {count}"


def _order(slots: Sequence[Slot]) -> str:
    names = [f"{s.name} ({s.dtype}{'' if s.size is None else f' × {s.size}'})" for s in slots]
    shown = ", ".join(names[:4]) + (f", … {names[-1]}" if len(names) > 4 else "")
    return f"A line holds, for each of {len(slots)} slots, `n v1 … vn` in this order: {shown}."


def number_at(text: U8, at: int) -> bytes:
    """Return the characters from `at` to the next blank or line end; a number may have millions."""
    window = _FIRST_WINDOW
    while not (ends := text[at : at + window] <= scan.SPACE).any():
        window *= 2
    return text[at : at + int(ends.argmax())].tobytes()


def shown_at(text: U8, at: int) -> str:
    """Return the characters from `at` to the next blank or line end, quoted for messages."""
    window = text[at : at + 4 * _SHOWN_CHARACTERS].tobytes().partition(b"\n")[0]
    token = re.split(rb"[ \t]", window, maxsplit=1)[0]
    if token in (b"", b"\r"):
        return "the end of the line"
    decoded = token.decode("utf-8", "backslashreplace")
    return repr(decoded if len(decoded) <= _SHOWN_CHARACTERS else decoded[:_SHOWN_CHARACTERS] + "…")
