"""Writing a data set: rows distributed in turn over MultiSlot files, published all at once.

`ShardedWriter` fills `.train-00000.txt.part` … and renames them when the `with` block ends without
an error, so that no job reads a half-written set. A job would read old files of a set together with
the new ones: they raise an error, or, with `replace`, are removed when the new ones are complete. A
part without rows has no files.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from types import TracebackType
from typing import IO, Self, TypeAlias, cast

import numpy as np

from psrt.core.errors import ConfigError, DataError, ErrorCode
from psrt.core.types import F32, F64, I64, U8
from psrt.data.sources import unwritable
from psrt.kernels.text import format_rows, row_bytes

Text: TypeAlias = bytes | memoryview
Chosen: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool_]]

PARTS = ("train", "test")
_FAST_GZIP = 1


@dataclass(frozen=True)
class Destination:
    """The destination of a data set: `files` files of each part in `directory`, gzipped or not."""

    directory: Path
    files: int = 2
    gzipped: bool = False
    replace: bool = False

    def __post_init__(self) -> None:
        if self.files < 1:
            raise ConfigError(f"files is 1 or more, not {self.files}")


@dataclass(frozen=True)
class ExampleRows:
    """Examples as arrays: `labels` (n,) 0 or 1, `dense` (n, d), `ids` (n, s) bit patterns."""

    labels: U8
    dense: F32
    ids: I64

    def select(self, chosen: Chosen) -> ExampleRows:
        """Return the rows of a mask (n,)."""
        return ExampleRows(self.labels[chosen], self.dense[chosen], self.ids[chosen])

    def text(self) -> Sequence[Text]:
        """Return one MultiSlot line per row."""
        count = len(self.labels)
        out = np.empty(count * row_bytes(self.dense.shape[1], self.ids.shape[1]), np.uint8)
        ends = np.empty(count, np.int64)
        format_rows(self.labels, self.dense, self.ids, out, ends)
        return lines_of(out, ends)


@dataclass(frozen=True)
class Lines:
    """Examples that are MultiSlot lines already, with `labels` (n,) 0 or 1."""

    labels: U8
    lines: Sequence[Text]

    def select(self, chosen: Chosen) -> Lines:
        """Return the lines of a mask (n,)."""
        return Lines(self.labels[chosen], list(compress(self.lines, chosen.tolist())))

    def text(self) -> Sequence[Text]:
        """Return the lines."""
        return self.lines


@dataclass(frozen=True)
class Split:
    """Test split: a fraction of the rows, chosen by a hash of the row and the seed."""

    test_fraction: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.test_fraction < 1:
            raise ConfigError(f"test_fraction is in [0, 1), not {self.test_fraction}")


Drawn: TypeAlias = "tuple[ExampleRows | Lines, F64]"
"""Rows, and for each a number in [0, 1); those below the test fraction are test rows."""


class ShardedWriter:
    """`with ShardedWriter(destination) as writer: writer.write("train", rows)`, then `paths`."""

    def __init__(self, destination: Destination) -> None:
        self.destination = destination
        self.rows = dict.fromkeys(PARTS, 0)
        self.clicks = dict.fromkeys(PARTS, 0)
        self._files: dict[str, list[IO[bytes]]] = {}
        self._old: list[Path] = []

    def __enter__(self) -> Self:
        where = self.destination
        try:
            where.directory.mkdir(parents=True, exist_ok=True)
            self._old = self._earlier_files()
            for part in PARTS:
                self._files[part] = [create(unfinished(p), where.gzipped) for p in self.paths(part)]
        except OSError as error:
            raise unwritable(where.directory, error) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for file in (file for files in self._files.values() for file in files):
            file.close()
        if error is None:
            for path in self._old:
                path.unlink(missing_ok=True)
        for part in self._files:
            for path in self.paths(part):
                if error is None and self.rows[part]:
                    unfinished(path).replace(path)
                else:
                    unfinished(path).unlink()

    def paths(self, part: str) -> list[Path]:
        """Return the files of `part`, in order."""
        suffix = ".txt.gz" if self.destination.gzipped else ".txt"
        names = [f"{part}-{i:05d}{suffix}" for i in range(self.destination.files)]
        return [self.destination.directory / name for name in names]

    def write(self, part: str, rows: ExampleRows | Lines) -> None:
        """Append rows; row i of the part goes to file i mod `files`."""
        lines, files = rows.text(), self._files[part]
        for i in range(len(files)):
            first = (i - self.rows[part]) % len(files)
            try:
                files[i].write(b"".join(lines[first :: len(files)]))
            except OSError as error:
                raise unwritable(self.paths(part)[i], error) from error
        self.rows[part] += len(lines)
        self.clicks[part] += int(rows.labels.sum())

    def _earlier_files(self) -> list[Path]:
        directory = self.destination.directory
        old = [path for part in PARTS for path in directory.glob(f"{part}-?????.txt*")]
        if old and not self.destination.replace:
            raise DataError(
                f"{directory} already holds {len(old)} data files ({_names(old)}). "
                "Nothing was written.",
                code=ErrorCode.DATA_MISSING,
                hint="Choose another --out, or give --replace to have them removed.",
            )
        return old


def drawn(
    paths: Iterable[Path | str],
    read: Callable[[Path | str], Iterator[tuple[ExampleRows | Lines, F64, int]]],
    on_bytes: Callable[[int], None],
) -> Iterator[Drawn]:
    """Yield what `read` yields of each file; `on_bytes` gets the bytes of text after each step."""
    for path in paths:
        for rows, draws, size_bytes in read(path):
            yield rows, draws
            on_bytes(size_bytes)


def write_split(
    destination: Destination,
    split: Split,
    train: Iterable[Drawn],
    tests: Iterable[Drawn] | None = None,
) -> ShardedWriter:
    """Write `train` and set a share of its rows aside, or, if given, write `tests` instead."""
    with ShardedWriter(destination) as writer:
        write_parts(writer, split, train, tests)
    return writer


def write_parts(
    writer: ShardedWriter, split: Split, train: Iterable[Drawn], tests: Iterable[Drawn] | None
) -> None:
    """Write both parts, see `write_split`."""
    fraction = split.test_fraction if tests is None else 0.0
    for rows, draws in train:
        is_test = draws < fraction
        writer.write("train", rows.select(~is_test))
        writer.write("test", rows.select(is_test))
    for rows, _ in tests or ():
        writer.write("test", rows)


def lines_of(text: U8, ends: I64, starts: I64 | None = None) -> list[Text]:
    """Return windows on `text`: line i ends at `ends[i]`, and begins at `starts[i]` or behind the
    line before it."""
    view, stops = text.data, ends.tolist()
    begins = [0, *stops[:-1]] if starts is None else starts.tolist()
    return [view[start:stop] for start, stop in zip(begins, stops, strict=False)]


def create(path: Path, gzipped: bool) -> IO[bytes]:
    """Open a new file to write."""
    # Level 1: digits of hashed ids hardly compress further, and level 9 takes five times longer.
    if gzipped:
        return cast("IO[bytes]", gzip.open(path, "wb", compresslevel=_FAST_GZIP))
    return open(path, "wb")


def unfinished(path: Path) -> Path:
    """Return the hidden name of a file being written, which globs of a job never match."""
    return path.with_name(f".{path.name}.part")


def _names(paths: Sequence[Path]) -> str:
    names = sorted(path.name for path in paths)
    return ", ".join(names[:2]) + (", …" if len(names) > 2 else "")
