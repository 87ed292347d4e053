"""MultiSlot lines to mini-batches.

A line holds, for each slot in order, `n v1 … vn`, separated by blanks or tabs; trailing blanks,
CRLF, blank lines and a missing last newline are allowed. A dense slot wants exactly its size; a
ragged one takes any n, also 0 (PaddlePaddle refuses 0: its generators pad, psrt does not ask them
to). Ids are unsigned 64-bit, kept as int64 bit patterns; floats become the nearest float32, nan and
inf are refused.

A `BatchParser` belongs to one thread. The loops are in `psrt.kernels.text`; this file places their
output and tells what is wrong with a line. Nothing is guessed: a line is read whole or refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from psrt.core.errors import ConfigError, DataError
from psrt.core.tensors import Ragged
from psrt.core.types import F32, I64, U8, Array
from psrt.kernels import multislot as kernel
from psrt.kernels import text as scan

Batch: TypeAlias = "dict[str, Array | Ragged]"

_FIRST_TIES = 64
_SHOWN_CHARACTERS = 40
_LONGEST_NUMBER = 1 << 20


@dataclass(frozen=True)
class Slot:
    """One field of a line; `size` is the number of values of a dense slot, None = ragged."""

    name: str
    dtype: Literal["uint64", "float"]
    size: int | None = None

    def __post_init__(self) -> None:
        if self.dtype not in ("uint64", "float"):
            raise ConfigError(f"slot {self.name!r}: dtype is uint64 or float, not {self.dtype!r}")
        if self.size is not None and self.size < 1:
            raise ConfigError(f"slot {self.name!r}: a dense slot has 1 value or more")


class BatchParser:
    """Cuts the lines of one or more files into batches of `batch_size` examples.

    Between calls, `report[ROWS]` examples of the batch under construction are in place; a batch
    handed out is never written again.
    """

    def __init__(self, slots: Sequence[Slot], batch_size: int) -> None:
        if not slots or len({slot.name for slot in slots}) < len(slots):
            raise ConfigError(f"slots need distinct names, got {[slot.name for slot in slots]}")
        if batch_size < 1:
            raise ConfigError(f"batch_size is 1 or more, not {batch_size}")
        self._slots = tuple(slots)
        self._batch_size = batch_size
        self._path = ""
        self._report: I64 = np.zeros(kernel.REPORT_CELLS, np.int64)
        self._ties: I64 = np.empty((_FIRST_TIES, 2), np.int64)
        self._layout = self._first_layout()
        self._place()

    def begin_file(self, path: str) -> None:
        """Lines fed from now on belong to `path` and count from 1."""
        self._path = path
        self._report[kernel.LINES] = 0

    def feed(self, text: U8) -> Iterator[Batch]:
        """Parse whole lines, `text` (n,) uint8 ending in a newline; yields each batch that fills.

        Raises `DataError` naming file, line and slot; batches before that line were yielded.
        """
        report = self._report
        report[kernel.POSITION] = 0
        while report[kernel.POSITION] < len(text):
            self._parse(text)
            if report[kernel.ROWS] == self._batch_size:
                yield self._take()
            elif report[kernel.STATUS] != scan.DONE:
                self._settle(text)

    def finish(self) -> Batch | None:
        """The last, smaller batch, if any examples are left."""
        return self._take() if self._report[kernel.ROWS] else None

    def _parse(self, text: U8) -> None:
        report = self._report
        report[kernel.TIES] = 0
        kernel.parse_rows(
            text,
            len(text),
            self._layout,
            self._ids,
            self._floats,
            self._offsets,
            self._ties,
            self._batch_size,
            report,
        )
        for position, index in self._ties[: report[kernel.TIES]]:
            self._floats[index] = float(_token(text, position))

    def _settle(self, text: U8) -> None:
        """Make the room the kernel asked for, or raise."""
        status = int(self._report[kernel.STATUS])
        if status == kernel.SLOT_FULL:
            self._widen(int(self._report[kernel.SLOT]), int(self._report[kernel.COUNT]))
        elif status == kernel.TIES_FULL:
            self._ties = np.empty((2 * len(self._ties), 2), np.int64)
        else:
            raise malformed(self._path, self._slots, text, self._report)

    def _first_layout(self) -> I64:
        """`kernel.LAYOUT_COLUMNS` per slot; ragged ones start with room for one value each."""
        layout = np.zeros((len(self._slots), kernel.LAYOUT_COLUMNS), np.int64)
        ragged = 0
        for row, slot in zip(layout, self._slots, strict=True):
            row[kernel.IS_FLOAT] = slot.dtype == "float"
            row[kernel.SIZE] = kernel.RAGGED if slot.size is None else slot.size
            row[kernel.CAPACITY] = self._batch_size * (slot.size or 1)
            row[kernel.OFFSETS_ROW] = ragged
            ragged += slot.size is None
        return layout

    def _place(self) -> None:
        """Lay the slots of a kind behind each other, and allocate."""
        self._kind_sizes = [0, 0]
        for row in self._layout:
            kind = row[kernel.IS_FLOAT]
            row[kernel.BASE] = self._kind_sizes[kind]
            self._kind_sizes[kind] += int(row[kernel.CAPACITY])
        # Plain tuples: reading numpy scalars for each slot and batch cost a tenth of the time.
        rows = self._layout.tolist()
        self._places = [(slot.name, *row) for slot, row in zip(self._slots, rows, strict=True)]
        self._ragged_slots = sum(slot.size is None for slot in self._slots)
        self._allocate()

    def _allocate(self) -> None:
        """Fresh arrays for a batch: all slots of a kind lie in one."""
        self._ids: I64 = np.empty(self._kind_sizes[0], np.int64)
        self._floats: F32 = np.empty(self._kind_sizes[1], np.float32)
        self._offsets: I64 = np.empty((self._ragged_slots, self._batch_size + 1), np.int64)
        self._offsets[:, 0] = 0

    def _widen(self, slot: int, count: int) -> None:
        """More room for a ragged slot; its values so far move along with all others."""
        batch, offsets = self._views(), self._offsets
        self._layout[slot, kernel.CAPACITY] *= 2
        self._layout[slot, kernel.CAPACITY] += count
        self._place()
        self._offsets = offsets
        for name, values in self._views().items():
            _values(values)[...] = _values(batch[name])

    def _views(self) -> Batch:
        """The examples in place, slot by slot."""
        rows = int(self._report[kernel.ROWS])
        batch: Batch = {}
        for name, is_float, size, base, _, line in self._places:
            values: Array = self._floats if is_float else self._ids
            if size == kernel.RAGGED:
                offsets = self._offsets[line, : rows + 1]
                batch[name] = Ragged(values[base : base + int(offsets[rows])], offsets)
            else:
                batch[name] = values[base : base + rows * size].reshape(rows, size)
        return batch

    def _take(self) -> Batch:
        batch = self._views()
        self._report[kernel.ROWS] = 0
        self._allocate()
        return batch


def malformed(path: str, slots: Sequence[Slot], text: U8, report: I64) -> DataError:
    """The error for the line a kernel refused."""
    at = int(report[kernel.POSITION])
    status = int(report[kernel.STATUS])
    column = at - text[:at].tobytes().rfind(b"\n")
    where = f"{path}, line {report[kernel.LINES] + 1}, column {column}"
    found = f"found {_shown(_token(text, at, 4 * _SHOWN_CHARACTERS))}"
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
    kind = {
        scan.BAD_ID: "an unsigned integer",
        scan.ID_TOO_LARGE: "an id of at most 64 bits",
        scan.BAD_FLOAT: "a finite number",
        scan.FLOAT_TOO_LARGE: "a number within the range of float32",
    }.get(status, "a value")
    return f"{kind} as value {value + 1} of {count}"


def _order(slots: Sequence[Slot]) -> str:
    names = [f"{s.name} ({s.dtype}{'' if s.size is None else f' × {s.size}'})" for s in slots]
    shown = ", ".join(names[:4]) + (f", … {names[-1]}" if len(names) > 4 else "")
    return f"A line holds, for each of {len(slots)} slots, `n v1 … vn` in this order: {shown}."


def _token(text: U8, at: int, limit: int = _LONGEST_NUMBER) -> bytes:
    """The characters from `at` to the next blank or line end; b"" if there is none."""
    stop = at
    while text[stop] > scan.SPACE and stop - at < limit:
        stop += 1
    return text[at:stop].tobytes()


def _shown(token: bytes) -> str:
    if not token:
        return "the end of the line"
    decoded = token.decode("utf-8", "backslashreplace")
    return repr(decoded if len(decoded) <= _SHOWN_CHARACTERS else decoded[:_SHOWN_CHARACTERS] + "…")


def _values(slot: Array | Ragged) -> Array:
    return slot.values if isinstance(slot, Ragged) else slot
