"""Lines of text that a kernel cuts into ranges first, then read column by column.

So the first bad value found may not be on the first bad line: the lines before it are read again,
until all of them are good.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from psrt.core.errors import DataError
from psrt.core.types import I64, U8
from psrt.data.formats.rebatching import RebatchingParser
from psrt.data.slots import Batch
from psrt.kernels.text import DONE, LINES, POSITION, STATUS

ROWS_PER_PIECE = 8192


class Refused(Exception):
    """Line `row` of those just cut has a bad value."""

    def __init__(self, row: int, error: DataError) -> None:
        super().__init__(row, error)
        self.row, self.error = row, error


class CutLinesParser(RebatchingParser):
    """See `psrt.data.formats.Parser`; formats define `_piece` and `_uncut`."""

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
        """Yield each batch that fills; raises `DataError` after the lines before a bad one."""
        text, position = self._begun(text)
        scratch = text.copy()
        while position < len(text):
            line = self.line
            try:
                piece = self._piece(scratch, position, ROWS_PER_PIECE)
            except Refused as refused:
                yield from self._rows_before(refused, text, position, line)
                raise refused.error from None
            yield from self._rebatcher.feed(piece)
            if self._report[STATUS] != DONE:
                raise self._uncut(text)
            position = int(self._report[POSITION])

    def _rows_before(self, bad: Refused, text: U8, position: int, line: int) -> Iterator[Batch]:
        """Read the lines before a bad one again; `bad` becomes the first bad line."""
        while bad.row:
            self._report[LINES] = line
            try:
                piece = self._piece(text.copy(), position, bad.row)
            except Refused as earlier:
                bad.row, bad.error = earlier.row, earlier.error
            else:
                yield from self._rebatcher.feed(piece)
                return

    def _begun(self, text: U8) -> tuple[U8, int]:
        """Return the text to cut, and its first position."""
        return text, 0

    def _piece(self, text: U8, position: int, rows: int) -> Batch:
        """Return the examples of at most `rows` lines; raises `Refused`. May write to `text`."""
        raise NotImplementedError

    def _uncut(self, text: U8) -> DataError:
        """Return the error for a line that cannot be cut."""
        raise NotImplementedError
