"""Positions in data: parts of files, and the progress of a reader.

A `Position` is between two examples of a file; a `Place` is the rest of a list of files, for one
reader. Both are plain data, so that a reading can be saved and continued.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from psrt.core.errors import ConfigError
from psrt.data.checks import at_least


@dataclass(frozen=True)
class FilePart:
    """Bytes `start` to `stop` of a plain text file: whole lines."""

    path: Path
    start: int
    stop: int

    def __str__(self) -> str:
        return f"{self.path}[{self.start}:{self.stop}]"


DataFile: TypeAlias = "Path | str | FilePart"
"""A unit of work of a reader thread; a `str` is a URL or `psrt.data.sources.raw_bytes.STDIN`."""


@dataclass(frozen=True)
class Position:
    """Behind the first `examples` examples of the block at `offset`.

    `offset` counts bytes of the decompressed text up to the start of a line; in Parquet and Arrow
    files it is a row group. `line`: lines before it, for messages; a `FilePart` counts its own.
    """

    file: str
    offset: int = 0
    line: int = 0
    examples: int = 0


@dataclass(frozen=True)
class Place:
    """The unread rest of a list of files: from each of `positions` to the end of its file, and the
    files from number `next_file` on."""

    positions: tuple[Position, ...] = ()
    next_file: int = 0


BEGINNING = Place()
"""The place of a reader that has read nothing."""


class Reading(NamedTuple):
    """A file to read, from `first` on, with a unique number."""

    number: int
    file: DataFile
    first: Position | None = None


class Bookmark:
    """Keeps the `Place` of a reader with one or more threads, behind the batches it returned.

    Batches that threads have read ahead do not count, because they would be lost.
    """

    def __init__(self, files: Sequence[DataFile], first: Place) -> None:
        self._files, self._next = files, first.next_file
        self._left = {-1 - i: position for i, position in enumerate(first.positions)}
        self._threads: dict[int, Position] = {}

    def readings(self) -> list[Reading]:
        """Return the files to read, in order; raises `ConfigError` if a position is in no file, or
        in one that would be read twice."""
        self._check_numbers()
        by_name = {str(file): file for file in self._files}
        for position in self._left.values():
            if position.file not in by_name:
                raise ConfigError(
                    f"reading was to go on in {position.file}, which is not among the files."
                )
        self._check_once()
        begun = [Reading(n, by_name[first.file], first) for n, first in self._left.items()]
        return begun + [Reading(n, self._files[n]) for n in range(self._next, len(self._files))]

    def _check_numbers(self) -> None:
        at_least(0, "next_file of a place", self._next, len(self._files))
        for position in self._left.values():
            for part in ("offset", "line", "examples"):
                at_least(0, f"{part} of a position in {position.file}", getattr(position, part))

    def _check_once(self) -> None:
        """Raise `ConfigError` for a position in a file still to be read, or two in one file."""
        begun = Counter(map(str, self._files[: self._next]))
        for name, count in Counter(position.file for position in self._left.values()).items():
            if count > begun[name]:
                raise ConfigError(
                    f"reading was to go on in {name} and to read it once more.",
                    hint="A place is that of a reader of the same files, in the same order.",
                )

    def hand(self, thread: int, begun: Iterable[int], position: Position) -> None:
        """Record a batch of a thread, the readings it has `begun` since its last, and its end."""
        for number in begun:
            for other in range(self._next, number):
                self._left[other] = Position(str(self._files[other]))
            self._next = max(self._next, number + 1)
            self._left.pop(number, None)
        self._threads[thread] = position

    @property
    def place(self) -> Place:
        return Place((*self._threads.values(), *self._left.values()), self._next)
