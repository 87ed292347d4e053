"""Lines of `name:value` words, as in PaddleRec's samples.

    click:0 dense:0.1 dense:0.25 1:737395 2:210498        order = "name:value"
    0:1 4351255118977467729:3 16543128959394097760:29      order = "value:name"
    1,0,1,210:7,210:8,216:4                                delimiter = ","

A slot has all values of one name, that of `[data.columns]`; a number there is the n-th word without
a colon, from 0. A dense slot needs its number of values; without any, each is `missing`. Names that
no slot takes are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from psrt.core.errors import ConfigError, DataError
from psrt.core.tensors import Ragged
from psrt.core.types import I64, U8, Array
from psrt.data.formats.cells import READERS, BadValue, TextCells
from psrt.data.formats.cut_lines import CutLinesParser, Refused
from psrt.data.formats.delimited import BLANKS, character, single_blanks
from psrt.data.formats.fields import Field, fields_of
from psrt.data.formats.multislot import shown_at
from psrt.data.slots import Batch, Slot
from psrt.kernels.text import POSITION, ROWS
from psrt.kernels.text import pairs as kernel

ORDERS = ("name:value", "value:name")


class PairsFormat:
    """The format `pairs`. `delimiter`: one character, or `BLANKS`; `order`: one of `ORDERS`."""

    def __init__(
        self,
        slots: Sequence[Slot],
        columns: Mapping[str, Any] | None = None,
        delimiter: str = BLANKS,
        order: str = ORDERS[0],
    ) -> None:
        self.slots = tuple(slots)
        self.fields = fields_of(slots, columns)
        _check(self.fields)
        if order not in ORDERS:
            raise ConfigError(f"order is {order!r}, expected {' or '.join(ORDERS)}.")
        self.value_first = order == ORDERS[1]
        self.blanks = delimiter == BLANKS
        self.delimiter = ord(" " if self.blanks else character("delimiter", delimiter))
        columns_of_slots = [field.columns[0] for field in self.fields]
        self.names = _hashes([str(c) if isinstance(c, str) else "" for c in columns_of_slots])
        words = [column for column in columns_of_slots if isinstance(column, int)]
        self.bare = np.full(max(words, default=-1) + 1, -1)
        for owner, column in enumerate(columns_of_slots):
            if isinstance(column, int):
                self.bare[column] = owner

    def parser(self, batch_size: int) -> PairsParser:
        return PairsParser(self, batch_size)


class PairsParser(CutLinesParser):
    """See `psrt.data.formats.Parser`."""

    def __init__(self, format: PairsFormat, batch_size: int) -> None:
        super().__init__(batch_size, kernel.REPORT_CELLS)
        self._format = format

    def _begun(self, text: U8) -> tuple[U8, int]:
        return (single_blanks(text) if self._format.blanks else text), 0

    def _piece(self, text: U8, position: int, rows: int) -> Batch:
        format, report = self._format, self._report
        report[POSITION] = position
        words = int(np.count_nonzero(text[position:] == format.delimiter)) + rows
        values = np.empty((words, kernel.VALUE_COLUMNS), np.int64)
        lines = self._lines[:rows]
        kernel.split_pairs(
            *(text, len(text), format.delimiter, format.value_first),
            *(format.names, format.bare, values, lines, report),
        )
        return self._slots(text, values[: report[kernel.VALUES]], int(report[ROWS]))

    def _slots(self, text: U8, values: I64, rows: int) -> Batch:
        """Return `rows` examples of `values`, gathered field by field."""
        values = np.ascontiguousarray(values[np.argsort(values[:, kernel.OWNER], kind="stable")].T)
        fields = self._format.fields
        ends = np.searchsorted(values[kernel.OWNER], np.arange(len(fields) + 1))
        batch: Batch = {}
        for field, start, stop in zip(fields, ends, ends[1:], strict=False):
            row, begin, end = values[kernel.ROW :, start:stop]
            cells = TextCells(text, np.ascontiguousarray(begin), np.ascontiguousarray(end))
            counts = np.bincount(row, minlength=rows)
            found = self._read(cells, field, row)
            if field.slot.size is None:
                batch[field.slot.name] = Ragged(found, np.append(0, np.cumsum(counts)))
            else:
                batch[field.slot.name] = self._rectangle(found, counts, field)
        return batch

    def _read(self, cells: TextCells, field: Field, row: I64) -> Array:
        try:
            found = READERS[field.kind](cells, field)
        except BadValue as bad:
            raise self._bad(int(row[bad.row]), field, bad.expected, repr(bad.found)) from None
        return found.astype(np.float32) if field.kind == "float" else found

    def _rectangle(self, found: Array, counts: I64, field: Field) -> Array:
        size = field.slot.size or 0
        absent = (counts == 0) & (field.missing is not None)
        if wrong := np.flatnonzero((counts != size) & ~absent).tolist():
            expected = f"{size} values" if size > 1 else "a value"
            raise self._bad(wrong[0], field, expected, str(counts[wrong[0]] or "none"))
        missing = field.missing_id if field.kind == "id" else field.missing or 0
        out = np.full((len(counts), size), missing, found.dtype)
        out[~absent] = found.reshape(-1, size)
        return out

    def _bad(self, row: int, field: Field, expected: str, found: str) -> Refused:
        error = DataError(
            f"{self._path}, line {self._lines[row] + 1}, name {field.columns[0]!r}: expected "
            f"{expected}, found {found}.",
            hint=f"It feeds slot {field.slot.name!r} as {field.kind}; see [data.columns].",
        )
        return Refused(row, error)

    def _uncut(self, text: U8) -> DataError:
        order = ORDERS[self._format.value_first]
        return DataError(
            f"{self._path}, line {self.line + 1}: expected {order}, "
            f"found {shown_at(text, int(self._report[POSITION]))}.",
            hint="Words without a colon are columns by number in [data.columns].",
        )


def _check(fields: Sequence[Field]) -> None:
    taken: dict[Any, str] = {}
    for field in fields:
        column, name = field.columns[0], field.slot.name
        if len(field.columns) > 1 or field.separator:
            raise ConfigError(f"data.columns.{name}: pairs have one name a slot, no separator.")
        if isinstance(column, int) and column < 0:
            raise ConfigError(f"data.columns.{name}: words are numbered from 0, not {column}.")
        if taken.setdefault(column, name) != name:
            raise ConfigError(f"data.columns.{name}: {column!r} is slot {taken[column]}'s.")


def _hashes(names: Sequence[str]) -> I64:
    encoded = [name.encode() for name in names]
    text = np.frombuffer(b"".join(encoded) + b"\n", np.uint8)
    ends, out = np.cumsum([len(name) for name in encoded]), np.empty(len(names), np.int64)
    kernel.hash_names(text, ends, out)
    return out
