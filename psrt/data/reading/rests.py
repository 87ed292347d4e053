"""The unread rests of files behind positions of readers, as units that can be dealt.

In plain text of this host a position is an offset in the file, found with the parser of the format:
such a rest is a part of the file, which may be cut at any line. Other rests stay whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import numpy as np

from psrt.core.errors import DataError
from psrt.core.types import U8
from psrt.data.formats import DelimitedFormat, Format, TextFormat
from psrt.data.slots import batch_rows
from psrt.data.sources import FilePart, Position, Reading, Rest, blocks, may_be_cut, stored_bytes
from psrt.kernels.text import NEWLINE

_BATCH = 4096
_BLANKS = np.frombuffer(b" \t\r\n", np.uint8)


def rests_of(readings: Iterable[Reading], format: Format) -> list[Rest]:
    """Return the rests of what is to be read, without empty ones.

    Raises `DataError` if a file is shorter than its position, or cannot be read.
    """
    return [rest for each in readings if (rest := _rest_of(each, format)).size_bytes or rest.first]


def _rest_of(reading: Reading, format: Format) -> Rest:
    _, file, first = reading
    first = first if first is not None and (first.offset or first.examples) else None
    part = _whole_part(file)
    if not isinstance(format, TextFormat) or part is None:
        assert not isinstance(file, FilePart), "only plain text has parts"
        return Rest(file, stored_bytes(file), first, first is not None)
    start = part.start if first is None else offset_of(part, first, format)
    rest = FilePart(part.path, start, part.stop)
    return Rest(rest, part.stop - start, is_begun=first is not None)


def offset_of(part: FilePart, position: Position, format: TextFormat) -> int:
    """Return the offset in its file, in bytes, of the first line behind a position in `part`.

    Raises `DataError` if there are fewer examples.
    """
    offset, left = max(position.offset, part.start), position.examples
    with closing(blocks(part, start=offset)) as texts:
        while left:
            text = next(texts, None)
            if text is None:
                raise DataError(
                    f"{part}: reading was to go on behind examples that are not there.",
                    hint="Did the file change since the cut?",
                )
            header = _header(part) if offset and _has_header(format) else None
            found = _examples(format, text, header)
            size = len(text) if found < left else _size_of(format, text, header, left)
            offset, left = offset + size, max(0, left - found)
    return min(offset, part.stop)


def _whole_part(file: Path | str | FilePart) -> FilePart | None:
    """Return a plain text file of this host as a part of itself, None for another."""
    if isinstance(file, FilePart):
        return file
    return FilePart(Path(file), 0, stored_bytes(file)) if may_be_cut(file) else None


def _size_of(format: TextFormat, text: U8, header: U8 | None, examples: int) -> int:
    """Return the bytes of the lines up to the end of that of example number `examples`."""
    ends = np.flatnonzero(text == NEWLINE) + 1
    words = np.append(0, np.cumsum(~np.isin(text, _BLANKS)))[ends]
    filled = np.cumsum(np.diff(words, prepend=0) > 0)
    guess = int(np.searchsorted(filled, examples + (header is None and _has_header(format))))
    probes = iter((guess, guess - 1))  # two parses are enough unless a format skips other lines
    low, high = examples - 1, len(ends) - 1
    while low < high:
        middle = min(max(next(probes, (low + high) // 2), low), high - 1)
        if _examples(format, text[: ends[middle]], header) >= examples:
            high = middle
        else:
            low = middle + 1
    return int(ends[low])


def _examples(format: TextFormat, text: U8, header: U8 | None) -> int:
    parser = format.parser(_BATCH)
    parser.begin_file("")
    if header is not None:
        list(parser.feed(header))
    return sum(map(batch_rows, parser.feed(text.copy()))) + parser.held


def _has_header(format: TextFormat) -> bool:
    return isinstance(format, DelimitedFormat) and format.header


def _header(part: FilePart) -> U8:
    with closing(blocks(part.path)) as texts:
        text = next(texts)
        return text[: int(np.argmax(text == NEWLINE)) + 1].copy()
