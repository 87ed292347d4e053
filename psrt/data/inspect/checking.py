"""All errors of data files, not only the first.

A refused block of lines or row group is halved until each bad line is alone; that line is left out
and counted. Training would stop at it. A column that cannot be read at all gives one error per row
group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from psrt.core.errors import DataError
from psrt.core.types import U8
from psrt.data.formats import DelimitedFormat, Format, RowGroup, RowGroupFormat, TextFormat
from psrt.data.slots import batch_rows
from psrt.data.sources import blocks
from psrt.kernels.text import NEWLINE

SHOWN_ERRORS = 20
_BATCH_SIZE = 1024


@dataclass
class Findings:
    """`shown` are the first errors in the order of the files; `errors` counts all."""

    examples: int = 0
    errors: int = 0
    files_with_errors: int = 0
    shown: list[str] = field(default_factory=list)

    def note(self, error: DataError) -> None:
        """Count an error, and keep its message if it is among the first."""
        self.errors += 1
        if len(self.shown) < SHOWN_ERRORS:
            self.shown.append(error.message)


def check(
    paths: Sequence[Path | str],
    format: Format,
    on_bytes: Callable[[int], None] = lambda size_bytes: None,
) -> Findings:
    """Read all files to their ends; errors name file, line and slot."""
    findings = Findings()
    for path in paths:
        before = findings.errors
        try:
            if isinstance(format, TextFormat):
                _check_lines(path, format, findings, on_bytes)
            else:
                _check_rows(path, format, findings)
        except DataError as error:  # of the file, not of a line
            findings.note(error)
        findings.files_with_errors += findings.errors > before
    return findings


def _check_lines(
    path: Path | str, format: TextFormat, findings: Findings, on_bytes: Callable[[int], None]
) -> None:
    line, apart = 0, None if isinstance(format, DelimitedFormat) else format
    for text in blocks(path):
        on_bytes(len(text))
        starts = np.append(0, np.flatnonzero(text == NEWLINE) + 1)
        first = 0
        if apart is None and isinstance(format, DelimitedFormat):
            apart = format.apart(str(path), text)
            first = int(apart is not None and format.header)
        if apart is not None:
            read = _reading(path, apart, text, starts.tolist(), line)
            _halve(read, first, len(starts) - 1, findings)
        line += len(starts) - 1


def _reading(
    path: Path | str, format: TextFormat, text: U8, starts: list[int], line: int
) -> Callable[[int, int], int]:
    """Return a function that reads a range of lines of `text`, which `line` lines precede."""

    def read(first: int, last: int) -> int:
        parser = format.parser(_BATCH_SIZE)
        parser.begin_file(str(path), line + first)
        batches = list(map(batch_rows, parser.feed(text[starts[first] : starts[last]])))
        rest = parser.finish()
        return sum(batches) + (batch_rows(rest) if rest is not None else 0)

    return read


def _check_rows(path: Path | str, format: RowGroupFormat, findings: Findings) -> None:
    for group in format.groups(path):
        _halve(_counting(group), 0, group.rows, findings)


def _counting(group: RowGroup) -> Callable[[int, int], int]:
    return lambda start, stop: batch_rows(group.read(start, stop))


def _halve(read: Callable[[int, int], int], start: int, stop: int, findings: Findings) -> None:
    """Count the examples of `start` … `stop`, and note the errors of the others."""
    if start == stop:
        return
    try:
        findings.examples += read(start, stop)
    except DataError as error:
        middle = (start + stop) // 2
        is_of_one = ", line " in error.message or ", row " in error.message
        if stop - start == 1 or not is_of_one:
            findings.note(error)
            return
        _halve(read, start, middle, findings)
        _halve(read, middle, stop, findings)
