"""Records made one at a time in Python: read by lines, split into train and test.

For data sets whose records are too few or too varied for a kernel of their own. The part of a
record depends on its text and the seed only.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from psrt.core.errors import DataError
from psrt.data.convert.sharded import PARTS, Lines, ShardedWriter, Split
from psrt.data.sources import blocks

_LINES_PER_WRITE = 8192


def numbered_lines(
    path: Path | str, on_bytes: Callable[[int], None] = lambda size_bytes: None
) -> Iterator[tuple[int, bytes]]:
    """Yield (number from 1 on, line without its end); blank lines are left out."""
    number = 0
    for text in blocks(path):
        on_bytes(len(text))
        for line in text.tobytes().split(b"\n")[:-1]:
            number += 1
            if line.strip():
                yield number, line.removesuffix(b"\r")


def fields_of(
    path: Path | str, number: int, line: bytes, separator: bytes, names: tuple[str, ...]
) -> list[bytes]:
    """Return the fields of a line; raises `DataError` unless there is one for each of `names`."""
    fields = line.split(separator)
    if len(fields) != len(names):
        raise DataError(
            f"{path}, line {number}: expected {len(names)} fields, found {len(fields)}. "
            "Nothing was written.",
            hint=f"A line is {separator.decode().join(names)}.",
        )
    return fields


def number_of(path: Path | str, number: int, field: str, text: bytes) -> int:
    """Return an integer of 0 or more; raises `DataError` naming the field."""
    if not text.isdigit():
        shown = text.decode("utf-8", "backslashreplace")
        raise DataError(
            f"{path}, line {number}, {field}: expected a number of digits, found {shown!r}. "
            "Nothing was written."
        )
    return int(text)


class Splitter:
    """Collects the lines of each part for a `ShardedWriter`; needs `flush` at the end."""

    def __init__(self, writer: ShardedWriter, split: Split) -> None:
        self._writer, self._split = writer, split
        self._lines: dict[str, list[bytes]] = {part: [] for part in PARTS}
        self._labels: dict[str, list[bool]] = {part: [] for part in PARTS}

    def part_of(self, record: bytes) -> str:
        """Return `train` or `test`."""
        draw = zlib.crc32(record, self._split.seed) / (1 << 32)
        return "test" if draw < self._split.test_fraction else "train"

    def write(self, part: str, lines: Iterable[bytes], label: bool = False) -> None:
        """Add the lines of one record, each with its newline; `label`: they are positive."""
        kept = self._lines[part]
        before = len(kept)
        kept.extend(lines)
        self._labels[part].extend([label] * (len(kept) - before))
        if len(kept) >= _LINES_PER_WRITE:
            self.flush()

    def flush(self) -> None:
        """Write the lines collected."""
        for part in PARTS:
            labels = np.array(self._labels[part], np.uint8)
            self._writer.write(part, Lines(labels, self._lines[part]))
            self._lines[part], self._labels[part] = [], []
