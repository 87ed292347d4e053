"""Lines of text that a kernel cuts into ranges first, and which are then read column by column.

So the first bad value that is found need not be that of the first bad line: the lines before it are
read again, until there is none.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from psrt.core.errors import DataError
from psrt.core.types import I64, U8
from psrt.data.formats.pieces import CuttingParser
from psrt.data.slots import Batch
from psrt.kernels.text import DONE, LINES, POSITION, STATUS

ROWS_PER_PIECE = 8192


class Refused(Exception):
    """Of the lines just cut, number `row` has a bad value."""

    def __init__(self, row: int, error: DataError) -> None:
        super().__init__(row, error)
        self.row, self.error = row, error


class CutLinesParser(CuttingParser):
    """See `psrt.data.formats.Parser`; `_piece` and `_uncut` are the format's."""

    def __init__(self, batch_size: int, report_cells: int) -> None:
        super().__init__(batch_size)
        self._report: I64 = np.zeros(report_cells, np.int64)
        self._lines: I64 = np.empty(ROWS_PER_PIECE, np.int64)
        self._path = ""

    def begin_file(self, path: str, line: int = 0) -> None:
        """See `psrt.data.formats.Parser`."""
        self._path = path
        self._report[LINES] = line

    @property
    def line(self) -> int:
        return int(self._report[LINES])

    def feed(self, text: U8) -> Iterator[Batch]:
        """Yields each batch that fills; a bad line is an error after those before it."""
        text, position = self._begun(text)
        scratch = text.copy()
        while position < len(text):
            line = self.line
            try:
                piece = self._piece(scratch, position, ROWS_PER_PIECE)
            except Refused as refused:
                yield from self._rows_before(refused, text, position, line)
                raise refused.error from None
            yield from self._cutter.feed(piece)
            if self._report[STATUS] != DONE:
                raise self._uncut(text)
            position = int(self._report[POSITION])

    def _rows_before(self, bad: Refused, text: U8, position: int, line: int) -> Iterator[Batch]:
        """Read the lines before a bad one again; `bad` becomes the first of all."""
        while bad.row:
            self._report[LINES] = line
            try:
                piece = self._piece(text.copy(), position, bad.row)
            except Refused as earlier:
                bad.row, bad.error = earlier.row, earlier.error
            else:
                yield from self._cutter.feed(piece)
                return

    def _begun(self, text: U8) -> tuple[U8, int]:
        """What is to be cut, and from where on."""
        return text, 0

    def _piece(self, text: U8, position: int, rows: int) -> Batch:
        """The examples of the next lines, at most `rows`; raises `Refused`. May write to `text`."""
        raise NotImplementedError

    def _uncut(self, text: U8) -> DataError:
        """The error for a line that cannot be cut."""
        raise NotImplementedError
