"""MultiSlot lines to records, without batches in between.

Lines and their errors are those of `psrt.data.formats.multislot`. Words are written to their final
memory; pieces of a few thousand records are returned as they fill, and each file ends one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from psrt.core.types import I64, U8
from psrt.data.datasets.records import Arena, Layout, Records
from psrt.data.formats import layout_of, malformed, number_at
from psrt.kernels.text import multislot as kernel
from psrt.kernels.text import parse_records
from psrt.kernels.text import text as scan

_PIECE_RECORDS = 8192
_FIRST_TIES = 64


class RecordParser:
    """Belongs to one thread. Between calls, `report[ROWS]` records of a piece are in place."""

    def __init__(self, layout: Layout) -> None:
        self._layout, self._table = layout, layout_of(layout.slots)
        self._arena, self._path = Arena(), ""
        self._report: I64 = np.zeros(kernel.REPORT_CELLS, np.int64)
        self._ties: I64 = np.empty((_FIRST_TIES, 2), np.int64)
        self._ends, self._counts = self._fresh(1)

    def begin_file(self, path: str) -> None:
        """Begin `path` at its first line."""
        self._path = path
        self._report[kernel.LINES] = 0

    def feed(self, text: U8) -> Iterator[Records]:
        """Parse whole lines, `text` (n,) uint8 ending in a newline; yield each piece that fills.

        Raises `DataError` naming file, line and slot.
        """
        report = self._report
        report[kernel.POSITION] = 0
        while report[kernel.POSITION] < len(text):
            self._parse(text)
            status, rows = int(report[kernel.STATUS]), int(report[kernel.ROWS])
            is_full = status == kernel.SLOT_FULL
            if rows == _PIECE_RECORDS or (is_full and rows):
                yield self._take()
            if is_full:
                self._arena.renew(0 if rows else 2 * len(self._arena.free))
            elif status != scan.DONE:
                self._settle(status, text)

    def finish(self) -> Records | None:
        """Return the last, smaller piece, if any records are left."""
        return self._take() if self._report[kernel.ROWS] else None

    def _parse(self, text: U8) -> None:
        report, words = self._report, self._arena.free.view(np.float32)
        report[kernel.TIES] = 0
        parse_records(
            *(text, len(text), self._table, words), *(self._ends, self._counts, self._ties, report)
        )
        for position, word in self._ties[: report[kernel.TIES]]:
            words[word] = float(number_at(text, position))

    def _settle(self, status: int, text: U8) -> None:
        """Make the room that the kernel requested, or raise `DataError`."""
        if status == kernel.TIES_FULL:
            self._ties = np.empty((2 * len(self._ties), 2), np.int64)
        elif status == kernel.COUNT_WIDE:
            narrow = self._counts
            _, self._counts = self._fresh(2 * narrow.shape[2])
            self._counts[:, :, : narrow.shape[2]] = narrow
        else:
            raise malformed(self._path, self._layout.slots, text, self._report)

    def _take(self) -> Records:
        """Return the records in place; the next ones follow in memory."""
        rows = int(self._report[kernel.ROWS])
        words = self._arena.take(int(self._ends[rows]))
        starts, counts = self._ends[: rows + 1], self._counts[:rows]
        if not self._layout.ragged_slots:
            starts = starts[:0]
        elif rows == _PIECE_RECORDS:
            self._ends, self._counts = self._fresh(1)
        else:
            starts, counts = starts.copy(), counts.copy()
        self._report[kernel.ROWS] = 0
        return Records(self._layout, words, starts, counts)

    def _fresh(self, width: int) -> tuple[I64, U8]:
        """Return memory for the ends of a piece's records, and for counts of `width` bytes."""
        shape = (_PIECE_RECORDS, self._layout.ragged_slots, width)
        return np.zeros(_PIECE_RECORDS + 1, np.int64), np.zeros(shape, np.uint8)
