"""Delimited text (CSV, TSV) to ranges: the cells of lines, the values of cells.

Cells and values are ranges of a text. The kernels that find them put a newline behind each, so that
the scanners of `text` end there; they therefore work on a copy. As in `text`, the last byte must be
a newline.
"""

from __future__ import annotations

from typing import Any

from psrt.kernels.jit import device, kernel
from psrt.kernels.text.text import DONE, NEWLINE, RETURN

# Reasons of a stop, besides the codes of `text`.
WRONG_CELLS = 64
OPEN_QUOTE = 65
TEXT_BEHIND_QUOTE = 66

# Cells of `report`.
STATUS, POSITION, ROWS, LINES, FOUND = range(5)
REPORT_CELLS = 5


@device
def at_end(text: Any, at: Any) -> Any:
    """True if a line ends here."""
    return text[at] == NEWLINE or (text[at] == RETURN and text[at + 1] == NEWLINE)


@device
def quoted_cell(text: Any, at: Any, quote: Any) -> Any:
    """Close up the doubled quotes of the cell with text at `at`; returns (stop, next, status)."""
    stop = at
    while True:
        if text[at] == NEWLINE:
            return stop, at, OPEN_QUOTE
        if text[at] == quote:
            if text[at + 1] != quote:
                return stop, at + 1, DONE
            at += 1
        text[stop] = text[at]
        stop += 1
        at += 1


@device
def split_line(
    text: Any, at: Any, delimiter: Any, quote: Any, row: Any, starts: Any, stops: Any
) -> Any:
    """Find the cells of a line; returns (cells, position of its end, status)."""
    cells = 0
    while True:
        start = at
        if quote != 0 and text[at] == quote:
            start = at + 1
            stop, at, status = quoted_cell(text, start, quote)
            if status == DONE and text[at] != delimiter and not at_end(text, at):
                status = TEXT_BEHIND_QUOTE
            if status != DONE:
                return cells, at, status
        else:
            while text[at] != delimiter and not at_end(text, at):
                at += 1
            stop = at
        if cells < len(starts):
            starts[cells, row], stops[cells, row] = start, stop
        cells += 1
        ended = at_end(text, at)
        if not ended:
            text[stop] = NEWLINE
            at += 1
            continue
        if stop < at:
            text[stop] = NEWLINE
        return cells, at, DONE


@kernel("u1[::1], i8, i8, i8, i8[:, ::1], i8[:, ::1], i8[::1], i8[::1] -> void", group="data")
def split_lines(
    text: Any,
    end: Any,
    delimiter: Any,
    quote: Any,
    starts: Any,
    stops: Any,
    lines: Any,
    report: Any,
) -> None:
    """Find the cells of lines from `report[POSITION]` to `end`, at most `len(lines)` of them.

    `starts`, `stops` (cells of a line, rows); `lines` (rows,) gets the lines before each, blank
    ones included. `quote` 0 = cells are taken as they are. A line that cannot be split stops the
    work, with STATUS and POSITION; for WRONG_CELLS, FOUND is the number of its cells.
    """
    at, row, status = report[POSITION], 0, DONE
    while at < end and row < len(lines):
        if not at_end(text, at):
            cells, stop, status = split_line(text, at, delimiter, quote, row, starts, stops)
            if status == DONE and cells != len(starts):
                status = WRONG_CELLS
            if status != DONE:
                at = at if status == WRONG_CELLS else stop
                report[FOUND] = cells
                break
            lines[row] = report[LINES]
            row += 1
            at = stop
        at += 1 + (text[at] == RETURN)
        report[LINES] += 1
    report[STATUS], report[POSITION], report[ROWS] = status, at, row


@kernel("u1[::1], i8[::1], i8[::1], i8, i8[::1], i8[::1], i8[::1] -> void", group="data")
def split_cells(
    text: Any, starts: Any, stops: Any, separator: Any, offsets: Any, begins: Any, ends: Any
) -> None:
    """Values of cells (n,) between separators: those of cell i are `begins`, `ends` from
    `offsets[i]` to `offsets[i + 1]`. An empty cell has none."""
    count = 0
    offsets[0] = 0
    for row in range(len(starts)):
        at, stop = starts[row], stops[row]
        if at < stop:
            begins[count] = at
            for position in range(at, stop):
                if text[position] == separator or text[position] == NEWLINE:
                    text[position] = NEWLINE
                    ends[count] = position
                    count += 1
                    begins[count] = position + 1
            ends[count] = stop
            count += 1
        offsets[row + 1] = count
