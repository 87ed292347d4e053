"""Records made one at a time in Python: read by lines, split into train and test.

For data sets whose records are too few or too varied for a kernel of their own. The part of a
record depends on its text and the seed only.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np

from psrt.core.errors import DataError
from psrt.data.convert.sharded import Drawn, Lines
from psrt.data.sources import blocks

_LINES_PER_WRITE = 8192

Record: TypeAlias = "tuple[bytes, Iterable[bytes], bool]"
"""Its text, which with the seed decides its part; its lines; whether they are positive."""


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


def drawn_lines(records: Iterable[Record], seed: int) -> Iterator[Drawn]:
    """Yield the lines of records, thousands at once, each with the number of its record."""
    lines: list[bytes] = []
    found: list[tuple[bool, float, int]] = []
    for text, of_record, label in records:
        before = len(lines)
        lines.extend(of_record)
        found.append((label, zlib.crc32(text, seed) / (1 << 32), len(lines) - before))
        if len(lines) >= _LINES_PER_WRITE:
            yield _drawn(lines, found)
            lines, found = [], []
    if found:
        yield _drawn(lines, found)


def _drawn(lines: list[bytes], found: list[tuple[bool, float, int]]) -> Drawn:
    labels, draws, counts = zip(*found, strict=True)
    return Lines(np.repeat(np.array(labels, np.uint8), counts), lines), np.repeat(draws, counts)
