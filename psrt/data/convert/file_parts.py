"""One text file cut into runs of its lines, one per trainer.

`name.txt` becomes `name-00000.txt`, `name-00001.txt` …, of near-equal numbers of lines. Each part
of a file with a header begins with that. The file is
read twice, to count and to cut. The parts are read again and counted before they get their names,
so that no job reads a half-written set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import numpy as np

from psrt.core.errors import ConfigError, DataError, ErrorCode
from psrt.core.types import U8
from psrt.data.convert.sharded import create, unfinished
from psrt.data.sources import blocks, unwritable

_NEWLINE = ord("\n")
_COMPRESSED = (".gz", ".zst")
_SHOWN = 60


def split_file(
    source: Path,
    parts: int,
    directory: Path,
    gzipped: bool = False,
    replace: bool = False,
    header: bool | None = None,
) -> list[tuple[Path, int]]:
    """Cut `source` (plain, gzip or zstd) into `parts` files; returns the path and lines of each.

    Raises `DataError` if it has fewer lines than parts, or, without `replace`, if parts exist
    already; files of an earlier, longer split count too. With `header` each part begins with the
    first line; None = there is none, and a first line that looks like one is refused.
    """
    if parts < 1:
        raise ConfigError(
            f"a file is split into 1 part or more, not {parts}. Nothing was written.",
            hint="Give --parts the number of trainers.",
        )
    head = _head_of(source, header)
    paths = part_paths(source, parts, directory, gzipped)
    earlier = _earlier_parts(source, directory, replace)
    sizes = part_sizes(count_lines(source) - bool(head), parts, source)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _write(source, [unfinished(path) for path in paths], sizes, gzipped, head)
        sizes = [size + bool(head) for size in sizes]
        _publish(paths, sizes, earlier)
    except OSError as error:
        raise unwritable(directory, error) from error
    finally:
        for path in paths:
            unfinished(path).unlink(missing_ok=True)
    return list(zip(paths, sizes, strict=True))


def _head_of(source: Path, header: bool | None) -> bytes:
    """The line that each part begins with; raises `DataError` for a header that may be one."""
    first = first_line(source) if header is not False else b""
    if header is None and looks_like_header(first):
        raise DataError(
            f"{source}, line 1: {first[:_SHOWN].decode('utf-8', 'replace').strip()!r} looks like "
            "the names of columns, which only the first part would get. Nothing was written.",
            hint="Give --header to begin each part with it, or --no-header if it is an example.",
        )
    return first if header else b""


def _earlier_parts(source: Path, directory: Path, replace: bool) -> list[Path]:
    """The files of an earlier split; raises `DataError` if there are some, without `replace`."""
    earlier = sorted(directory.glob(_name(source, "?????", "*")))
    if earlier and not replace:
        raise DataError(
            f"{earlier[0]} is there already. Nothing was written.",
            code=ErrorCode.DATA_MISSING,
            hint="Choose another --out, or give --replace to have it removed.",
        )
    return earlier


def part_paths(source: Path, parts: int, directory: Path, gzipped: bool) -> list[Path]:
    """Return the paths of the parts."""
    zipped = ".gz" if gzipped else ""
    return [directory / _name(source, f"{part:05d}", zipped) for part in range(parts)]


def part_sizes(lines: int, parts: int, source: Path | str) -> list[int]:
    """Return the lines of each part: near-equal, the larger first; raises `DataError`."""
    if lines < parts:
        raise DataError(f"{source} has {lines} lines, too few for {parts} parts.")
    return [lines // parts + (part < lines % parts) for part in range(parts)]


def count_lines(path: Path | str) -> int:
    """Return the lines of a file; a last line without a newline counts."""
    return sum(int(np.count_nonzero(text == _NEWLINE)) for text in blocks(path))


def first_line(source: Path) -> bytes:
    """Return the first line of a file with its newline."""
    for text in blocks(source):
        return text[: int(np.argmax(text == _NEWLINE)) + 1].tobytes()
    return b""


def looks_like_header(line: bytes) -> bool:
    """Return True if a line has several cells, and none of them is or begins with a number."""
    cells = [cell.strip(b" \"'") for cell in re.split(rb"[,;\t|]", line.strip())]
    return len(cells) > 1 and all(cell[:1].isalpha() or cell[:1] == b"_" for cell in cells)


def _write(source: Path, paths: list[Path], sizes: list[int], gzipped: bool, head: bytes) -> None:
    pieces = groupby(_pieces(source, sizes, len(head)), lambda piece: piece[0])
    for path, (_, texts) in zip(paths, pieces, strict=False):
        with create(path, gzipped) as file:
            file.write(head)
            for _, text in texts:
                file.write(text.data)


def _pieces(source: Path, sizes: list[int], left_out: int) -> Iterator[tuple[int, U8]]:
    """Yield (part, run of lines) behind the first `left_out` bytes, those of a header."""
    part, wanted = 0, sizes[0]
    for block in blocks(source):
        text, left_out = block[left_out:], 0
        ends = np.flatnonzero(text == _NEWLINE) + 1
        taken, start = 0, 0
        while taken < len(ends):
            count = len(ends) - taken
            if part + 1 < len(sizes):
                count = min(wanted, count)
            stop = int(ends[taken + count - 1])
            yield part, text[start:stop]
            taken, start, wanted = taken + count, stop, wanted - count
            if not wanted and part + 1 < len(sizes):
                part, wanted = part + 1, sizes[part + 1]


def _publish(paths: list[Path], sizes: list[int], earlier: list[Path]) -> None:
    """Rename the parts if they have their sizes; raises `DataError`."""
    for path, size in zip(paths, sizes, strict=True):
        part = unfinished(path)
        found = count_lines(part) if part.exists() else 0
        if found != size:
            raise DataError(
                f"{path} got {found} lines in place of {size}. No part was kept.",
                hint="Did the file change while it was read? Split it again.",
            )
    for path in earlier:
        path.unlink()
    for path in paths:
        unfinished(path).replace(path)


def _name(source: Path, part: str, ending: str) -> str:
    name = source.with_suffix("") if source.suffix in _COMPRESSED else source
    return f"{name.stem}-{part}{name.suffix}{ending}"
