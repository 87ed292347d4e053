"""All that is wrong with data files, not only the first line of it.

A line that is refused is left out and the next one is read, for counting only: training stops at
it. Formats that are not MultiSlot text give the first error of each file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from psrt.core.errors import DataError
from psrt.core.types import U8
from psrt.data.formats import Format, MultiSlotFormat
from psrt.data.multislot import BatchParser
from psrt.data.readers import reader_of
from psrt.data.slots import Slot, batch_rows
from psrt.data.sources import Files, blocks
from psrt.kernels import multislot as kernel

SHOWN_ERRORS = 20
_BATCH_SIZE = 1024
_FIRST_WINDOW = 256


@dataclass
class Findings:
    """`shown` are the first errors in the order of the files; `errors` counts all of them."""

    examples: int = 0
    errors: int = 0
    files_with_errors: int = 0
    shown: list[str] = field(default_factory=list)

    def note(self, error: DataError) -> None:
        self.errors += 1
        if len(self.shown) < SHOWN_ERRORS:
            self.shown.append(error.message)


def check(
    paths: Sequence[Path | str],
    format: Format,
    on_bytes: Callable[[int], None] = lambda size_bytes: None,
) -> Findings:
    """Read all files to their ends; each error names file, line and slot."""
    findings = Findings()
    for path in paths:
        before = findings.errors
        try:
            if isinstance(format, MultiSlotFormat):
                _check_lines(path, format, findings, on_bytes)
            else:
                _check_rows(path, format, findings, on_bytes)
        except DataError as error:  # of the file, not of a line
            findings.note(error)
        findings.files_with_errors += findings.errors > before
    return findings


class SkippingParser(BatchParser):
    """Goes on behind a line that was refused, which `on_error` is told."""

    def __init__(self, slots: Sequence[Slot], on_error: Callable[[DataError], None]) -> None:
        super().__init__(slots, _BATCH_SIZE)
        self._on_error = on_error

    def skim(self, text: U8) -> int:
        """How many examples of whole lines, `text` (n,) uint8, filled a batch."""
        examples = 0
        while len(text):
            try:
                for batch in self.feed(text):
                    examples += batch_rows(batch)
                break
            except DataError as error:
                self._on_error(error)
                text = text[self._next_line(text) :]
        return examples

    def _next_line(self, text: U8) -> int:
        """Where the line behind the refused one begins."""
        at, window = int(self._report[kernel.POSITION]), _FIRST_WINDOW
        self._report[kernel.LINES] += 1
        while (found := text[at : at + window].tobytes().find(b"\n")) < 0:
            at, window = at + window, 2 * window
        return at + found + 1


def _check_lines(
    path: Path | str,
    format: MultiSlotFormat,
    findings: Findings,
    on_bytes: Callable[[int], None],
) -> None:
    parser = SkippingParser(format.slots, findings.note)
    parser.begin_file(str(path))
    try:
        for text in blocks(path):
            on_bytes(len(text))
            findings.examples += parser.skim(text)
    finally:  # a file may be cut off behind good lines
        last = parser.finish()
        findings.examples += batch_rows(last) if last is not None else 0


def _check_rows(
    path: Path | str, format: Format, findings: Findings, on_bytes: Callable[[int], None]
) -> None:
    reader = reader_of(format, _BATCH_SIZE, Files(), on_bytes)
    for batch in reader.read(path):
        findings.examples += batch_rows(batch)
    if (last := reader.finish()) is not None:
        findings.examples += batch_rows(last)
