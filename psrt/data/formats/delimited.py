"""Delimited text (CSV, TSV, columns between blanks), a row of cells per line.

Cells may be quoted (RFC 4180), but a line ends at its newline, quoted or not. Blank lines are
skipped; any other line has as many cells as the header or, without one, as the first line.
`psrt.data.formats.fields` describes the columns that feed each slot.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from psrt.core.errors import ConfigError, DataError
from psrt.core.types import I64, U8
from psrt.data.formats.cut_lines import CutLinesParser
from psrt.data.formats.fields import fields_of
from psrt.data.formats.table_rows import TableRows, check_fields
from psrt.data.slots import Batch, Slot
from psrt.kernels.text import DONE, NEWLINE, RETURN, SPACE
from psrt.kernels.text import delimited as kernel

BLANKS = "blanks"
"""Delimiter: any run of blanks and tabs, also around a line."""

_TAB = 9


class DelimitedFormat:
    """The format `csv`.

    `delimiter`: one character ("\\t" for TSV), or `BLANKS`, without quotes then. `header`: the
    first line of each file names the columns; true by default, unless `names` names them. `quote`:
    one character, "" = none.
    """

    def __init__(
        self,
        slots: Sequence[Slot],
        columns: Mapping[str, Any] | None = None,
        delimiter: str = ",",
        header: bool | None = None,
        quote: str = '"',
        names: Sequence[str] = (),
    ) -> None:
        self.slots = tuple(slots)
        self.fields = fields_of(slots, columns)
        check_fields(self.fields)
        self.blanks = delimiter == BLANKS
        self.delimiter = " " if self.blanks else character("delimiter", delimiter)
        self.quote = "" if self.blanks or quote == "" else character("quote", quote)
        if self.quote == self.delimiter:
            raise ConfigError(f"delimiter and quote are both {self.quote!r}.")
        self.names = _checked_names(names)
        self.header = _has_header(header, self.names)

    def parser(self, batch_size: int) -> DelimitedParser:
        return DelimitedParser(self, batch_size)

    def apart(self, path: str, text: U8) -> DelimitedFormat | None:
        """Return a format without a header for the lines of a file that begins with `text`; None if
        all of `text` is blank. Raises `DataError` for missing columns."""
        parser = self.parser(1)
        parser.begin_file(path)
        parser.begin_lines(single_blanks(text) if self.blanks else text)
        if not parser.columns:
            return None
        other = copy.copy(self)
        other.header, other.names = False, parser.columns
        return other


class DelimitedParser(CutLinesParser):
    """See `psrt.data.formats.Parser`; `columns`, names or numbers, come from the first line."""

    def __init__(self, format: DelimitedFormat, batch_size: int) -> None:
        super().__init__(batch_size, kernel.REPORT_CELLS)
        self._format = format
        self._width = 0
        self.columns: tuple[str, ...] = ()
        self._rows: TableRows | None = None

    def begin_file(self, path: str, line: int = 0) -> None:
        """Begin a file; the text fed next begins with its header, also in the middle of a file."""
        super().begin_file(path, line)
        self._rows = None

    def _begun(self, text: U8) -> tuple[U8, int]:
        text = single_blanks(text) if self._format.blanks else text
        return text, 0 if self._rows else self.begin_lines(text)

    def _piece(self, text: U8, position: int, rows: int) -> Batch:
        assert self._rows is not None
        starts, stops = self._cut(text, position, rows)
        return self._rows.piece(text, self._lines[: starts.shape[1]], starts, stops)

    def _cut(self, text: U8, position: int, rows: int) -> tuple[I64, I64]:
        """Return (starts, stops) of the cells of at most `rows` lines, (columns, lines) each."""
        self._report[kernel.POSITION] = position
        starts, stops = np.empty((2, self._width, rows), np.int64)
        mark, quote = ord(self._format.delimiter), ord(self._format.quote or "\0")
        lines, report = self._lines[:rows], self._report
        kernel.split_lines(text, len(text), mark, quote, starts, stops, lines, report)
        found = int(report[kernel.ROWS])
        return starts[:, :found], stops[:, :found]

    def begin_lines(self, text: U8) -> int:
        """Take names and number of columns from the first line; returns the start of the data."""
        format, line = self._format, self.line
        cells = self._first_cells(text)
        if cells is None:
            return len(text)
        names = list(format.names)
        self._width = len(names) or len(cells)
        if format.header and not names:
            names = [cell.decode("utf-8", "backslashreplace") for cell in cells]
            names[0] = names[0].removeprefix("\ufeff")
        self.columns = tuple(names) or tuple(map(str, range(self._width)))
        self._rows = TableRows(self._path, format.fields, names, self._width)
        self._report[kernel.LINES] = max(line, 1) if format.header else line
        return int(np.argmax(text == NEWLINE)) + 1 if format.header else 0

    def _first_cells(self, text: U8) -> list[bytes] | None:
        """Return the cells of the first line; None if all lines are blank."""
        line, self._width = self.line, 1
        for _ in range(2):  # to count, then to find
            self._report[kernel.LINES] = line
            scratch = text.copy()
            starts, stops = self._cut(scratch, 0, 1)
            if self._report[kernel.STATUS] == kernel.WRONG_CELLS:
                self._width = int(self._report[kernel.FOUND])
        if self._report[kernel.STATUS] != DONE:
            raise self._uncut(text)
        if self._format.header and (not starts.size or self._lines[0] > line):
            raise DataError(
                f"{self._path}, line 1: expected the names of the columns, found nothing.",
                hint="header = false in [data.options] if the files have no header.",
            )
        if not starts.size:
            return None
        return [scratch[a:b].tobytes() for a, b in zip(starts[:, 0], stops[:, 0], strict=True)]

    def _uncut(self, text: U8) -> DataError:
        """Return the error for a line that cannot be cut into cells."""
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


def single_blanks(text: U8) -> U8:
    """Return the text with one blank for each run of blanks and tabs, none at ends of lines."""
    blank = (text == SPACE) | (text == _TAB)
    behind = np.append(True, blank[:-1] | (text[:-1] == NEWLINE))
    text = np.where(blank, np.uint8(SPACE), text)[~(blank & behind)]
    line_end = text == NEWLINE
    line_end[:-1] |= (text[:-1] == RETURN) & line_end[1:]
    single: U8 = text[~((text == SPACE) & np.append(line_end[1:], False))]
    return single


def _checked_names(names: Any) -> tuple[str, ...]:
    legal = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
    if not legal or len(set(names)) < len(names):
        raise ConfigError(f"names is {names!r}, expected a list of texts that differ.")
    return tuple(names)


def _has_header(header: Any, names: Sequence[str]) -> bool:
    """Return whether files have a header; raises `ConfigError` for columns named twice."""
    if header is None:
        return not names
    if not isinstance(header, bool):
        raise ConfigError(f"header is {header!r}, expected true or false.")
    if header and names:
        raise ConfigError(
            "names and header = true both name the columns.",
            hint="Leave out names if the first line of each file has them, or else header.",
        )
    return header


def character(option: str, value: Any) -> str:
    """Return an option of one character; raises `ConfigError` for any other value."""
    if not isinstance(value, str) or len(value.encode()) != 1 or value in "\r\n":
        raise ConfigError(f"{option} is {value!r}, expected one ASCII character.")
    return value
