"""Delimited text (CSV, TSV) read directly, a row of cells per line.

Cells may be quoted (RFC 4180), but a line ends at its newline, quoted or not. Blank lines are
skipped; any other line has as many cells as the header or, without one, the first line. Which
columns feed which slot, and as what, is in `psrt.data.fields`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from psrt.core.errors import ConfigError, DataError
from psrt.core.tensors import Ragged
from psrt.core.types import I64, U8, Array
from psrt.data.cells import BadValue, Cells, dense_column, ragged_column
from psrt.data.fields import Column, Field, check_cells, fields_of
from psrt.data.pieces import CuttingParser
from psrt.data.slots import Batch, Slot
from psrt.kernels import delimited as kernel
from psrt.kernels.text import DONE

_ROWS_PER_PIECE = 8192


class DelimitedFormat:
    """The format `csv`.

    `delimiter`: one character ("\\t" for TSV). `header`: whether the first line of each file names
    the columns; `names` names them instead. `quote`: one character, "" = none.
    """

    def __init__(
        self,
        slots: Sequence[Slot],
        columns: Mapping[str, Any] | None = None,
        delimiter: str = ",",
        header: bool = True,
        quote: str = '"',
        names: Sequence[str] = (),
    ) -> None:
        self.slots = tuple(slots)
        self.fields = fields_of(slots, columns)
        for field in self.fields:
            check_cells(field)
        self.delimiter = _character("delimiter", delimiter)
        self.quote = _character("quote", quote) if quote else ""
        self.header, self.names = header, tuple(names)

    def parser(self, batch_size: int) -> DelimitedParser:
        return DelimitedParser(self, batch_size)

    def cells_of(self, line: bytes) -> list[str]:
        """The cells of one line, for headers and counts."""
        text = line.decode("utf-8-sig", "backslashreplace").rstrip("\r\n")
        if self.quote:
            rows = csv.reader([text], delimiter=self.delimiter, quotechar=self.quote)
        else:
            rows = csv.reader([text], delimiter=self.delimiter, quoting=csv.QUOTE_NONE)
        return next(rows, [])


class DelimitedParser(CuttingParser):
    """See `psrt.data.formats.Parser`."""

    def __init__(self, format: DelimitedFormat, batch_size: int) -> None:
        super().__init__(batch_size)
        self._format = format
        self._report: I64 = np.zeros(kernel.REPORT_CELLS, np.int64)
        self._lines: I64 = np.empty(_ROWS_PER_PIECE, np.int64)
        self._path, self._names = "", list(format.names)
        self._width = 0

    def begin_file(self, path: str, line: int = 0) -> None:
        """Also in the midst of a file, the text fed next begins with the header, if it has one."""
        self._path, self._width = path, 0
        self._names = list(self._format.names)
        self._report[kernel.LINES] = line

    @property
    def line(self) -> int:
        return int(self._report[kernel.LINES])

    def feed(self, text: U8) -> Iterator[Batch]:
        """Yields each batch that fills; a bad line is an error after those before it."""
        position = 0 if self._width else self._begin_lines(text)
        copy = text.copy()
        while position < len(text):
            self._report[kernel.POSITION] = position
            starts, stops = np.empty((2, self._width, _ROWS_PER_PIECE), np.int64)
            mark, quote = ord(self._format.delimiter), ord(self._format.quote or "\0")
            kernel.split_lines(
                copy, len(copy), mark, quote, starts, stops, self._lines, self._report
            )
            rows = int(self._report[kernel.ROWS])
            if rows:
                yield from self._cutter.feed(self._piece(copy, starts[:, :rows], stops[:, :rows]))
            if self._report[kernel.STATUS] != DONE:
                raise self._uncut(text)
            position = int(self._report[kernel.POSITION])

    def _begin_lines(self, text: U8) -> int:
        """Take names and number of the columns from the first line; returns where data begins."""
        end = text.tobytes().index(b"\n") + 1
        cells = self._format.cells_of(text[:end].tobytes())
        self._width = len(self._format.names) or len(cells)
        if not self._format.header:
            self._check_columns()
            return 0
        self._names = self._names or cells
        self._check_columns()
        self._report[kernel.LINES] += self._report[kernel.LINES] == 0
        return end

    def _check_columns(self) -> None:
        for field in self._format.fields:
            for column in field.columns:
                self._index(column, field)

    def _index(self, column: Column, field: Field) -> int:
        if isinstance(column, int) and 0 <= column < self._width:
            return column
        if column in self._names:
            return self._names.index(str(column))
        known = ", ".join(self._names) or f"0 … {self._width - 1}"
        raise DataError(
            f"{self._path} has no column {column!r}, which slot {field.slot.name!r} takes.",
            hint=f"Its columns are {known}; [data.columns] says which slot takes which.",
        )

    def _piece(self, text: U8, starts: I64, stops: I64) -> Batch:
        """The rows just cut. Cells are split in place, so that slots of whole ones go first."""
        piece: Batch = {}
        for field in sorted(self._format.fields, key=lambda field: bool(field.separator)):
            columns = [self._index(column, field) for column in field.columns]
            cells = [
                Cells(text, np.ascontiguousarray(starts[c]), np.ascontiguousarray(stops[c]))
                for c in columns
            ]
            piece[field.slot.name] = self._slot(field, cells)
        return {slot.name: piece[slot.name] for slot in self._format.slots}

    def _slot(self, field: Field, columns: list[Cells]) -> Array | Ragged:
        if field.slot.size is None or field.separator:
            ragged = self._read(ragged_column, columns[0], field, 0)
            return ragged if field.slot.size is None else self._rectangle(ragged, field)
        dtype = np.float32 if field.kind == "float" else np.int64
        out = np.empty((len(columns[0].starts), len(columns)), dtype)
        for place, cells in enumerate(columns):
            out[:, place] = self._read(dense_column, cells, field, place)
        return out

    def _read(self, read: Any, cells: Cells, field: Field, place: int) -> Any:
        try:
            return read(cells, field)
        except BadValue as bad:
            raise self._bad(bad, field, field.columns[place]) from None

    def _rectangle(self, ragged: Ragged, field: Field) -> Array:
        size = field.slot.size or 0
        lengths = np.diff(ragged.offsets)
        if wrong := np.flatnonzero(lengths != size).tolist():
            raise DataError(
                f"{self._path}, line {self._lines[wrong[0]] + 1}, column {field.columns[0]!r}: "
                f"expected {size} values between {field.separator!r}, found {lengths[wrong[0]]}."
            )
        return ragged.values.reshape(-1, size)

    def _bad(self, bad: BadValue, field: Field, column: Column) -> DataError:
        return DataError(
            f"{self._path}, line {self._lines[bad.row] + 1}, column {column!r}: expected "
            f"{bad.expected}, found {bad.found!r}.",
            hint=f"It feeds slot {field.slot.name!r} as {field.kind}; see [data.columns].",
        )

    def _uncut(self, text: U8) -> DataError:
        """The error for a line that has no cells as the others have."""
        status, at = int(self._report[kernel.STATUS]), int(self._report[kernel.POSITION])
        expected, found = f"{self._width} cells between {self._format.delimiter!r}", "the line end"
        if status == kernel.WRONG_CELLS:
            found = str(self._report[kernel.FOUND])
        elif status == kernel.OPEN_QUOTE:
            expected = f"{self._format.quote} at the end of a cell"
        else:
            expected = f"{self._format.delimiter!r} behind a quoted cell"
            found = repr(text[at : at + 1].tobytes().decode("utf-8", "backslashreplace"))
        line = int(self._report[kernel.LINES]) + 1
        return DataError(
            f"{self._path}, line {line}: expected {expected}, found {found}.",
            hint="The delimiter, quote and header of the files are in [data.options].",
        )


def _character(option: str, value: Any) -> str:
    if not isinstance(value, str) or len(value.encode()) != 1 or value in "\r\n":
        raise ConfigError(f"{option} is {value!r}, expected one ASCII character.")
    return value
