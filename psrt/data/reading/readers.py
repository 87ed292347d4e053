"""Readers of one thread: its files one after the other, in any format.

A reader reads each file from its start or from a `Position`. Its `position` is behind the last
batch returned: in the block of text, or the row group, in which that batch filled.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from typing import Protocol

import numpy as np

from psrt.core.errors import ConfigError, DataError
from psrt.core.types import U8
from psrt.data.formats import DelimitedFormat, Format, Parser, Rebatcher, RowGroupFormat, TextFormat
from psrt.data.slots import Batch, batch_rows
from psrt.data.sources import DataFile, FilePart, Files, Position, TextSource
from psrt.kernels.text import NEWLINE


class FileReader(Protocol):
    """Reads the files of one thread, one after the other."""

    @property
    def position(self) -> Position:
        """The end of the last batch yielded or returned; invalid before the first."""
        ...

    def read(self, path: DataFile, first: Position | None = None) -> Generator[Batch, None, None]:
        """Yield each batch that fills, beginning with the examples behind `first`."""
        ...

    def finish(self) -> Batch | None:
        """Return the last, smaller batch, if any examples are left."""
        ...


def reader_of(
    format: Format, batch_size: int, source: TextSource, on_bytes: Callable[[int], None]
) -> FileReader:
    """Return a reader for one thread; `on_bytes` is called with the bytes of text it parses."""
    if isinstance(format, TextFormat):
        return _TextReader(format, batch_size, source, on_bytes)
    if not isinstance(source, Files):
        raise ConfigError(
            "a pipe command gives lines of text, which a binary format cannot read.",
            hint="Leave the command out, or let it write MultiSlot lines.",
        )
    return _RowGroupReader(format, batch_size)


class _PositionedReader:
    """Position at the end of the last batch: block, and examples since its start."""

    def __init__(self, rows: Parser | Rebatcher) -> None:
        self._rows = rows
        self._handed = self._before = 0
        self._block = Position("")

    def _begin(self, file: DataFile, offset: int, line: int = 0) -> None:
        """Begin a block, after all text before it is parsed; batches that fill now end in it."""
        self._block = Position(str(file), offset, line)
        self._before = self._handed + self._rows.held - self._rows.skipping

    def _hand(self, batch: Batch) -> Batch:
        self._handed += batch_rows(batch)
        return batch

    def _check_skipped(self) -> None:
        """Raise `DataError` at the end of a file that lacks examples to skip."""
        if self._rows.skipping:
            raise DataError(
                f"{self._block.file}: reading was to go on behind examples that are not there.",
                hint="Did the file change since the position was saved?",
            )

    @property
    def position(self) -> Position:
        return replace(self._block, examples=self._handed - self._before)

    def finish(self) -> Batch | None:
        last = self._rows.finish()
        return last and self._hand(last)


class _TextReader(_PositionedReader):
    def __init__(
        self,
        format: TextFormat,
        batch_size: int,
        source: TextSource,
        on_bytes: Callable[[int], None],
    ) -> None:
        self._parser, self._source, self._on_bytes = format.parser(batch_size), source, on_bytes
        self._has_header = isinstance(format, DelimitedFormat) and format.header
        super().__init__(self._parser)

    def read(self, path: DataFile, first: Position | None = None) -> Generator[Batch, None, None]:
        first = first or Position(str(path))
        parser = self._parser
        offset = max(first.offset, path.start if isinstance(path, FilePart) else 0)
        parser.begin_file(self._source.name(path), first.line)
        if offset and self._has_header:
            list(parser.feed(self._header(path)))
        parser.skip(first.examples)
        with closing(self._source.blocks(path, offset)) as texts:
            for text in texts:
                self._on_bytes(len(text))
                self._begin(path, offset, parser.line)
                yield from map(self._hand, parser.feed(text))
                offset += len(text)
        self._check_skipped()

    def _header(self, path: DataFile) -> U8:
        """Return the first line of the file, which names its columns."""
        with closing(
            self._source.blocks(path.path if isinstance(path, FilePart) else path)
        ) as texts:
            text = next(texts)
            return text[: int(np.argmax(text == NEWLINE)) + 1].copy()


class _RowGroupReader(_PositionedReader):
    """Batches span files, as those of text do."""

    def __init__(self, format: RowGroupFormat, batch_size: int) -> None:
        self._format, self._batch_size = format, batch_size
        self._rebatcher = Rebatcher(batch_size)
        super().__init__(self._rebatcher)

    def read(self, path: DataFile, first: Position | None = None) -> Generator[Batch, None, None]:
        if isinstance(path, FilePart):
            raise ConfigError(f"{path} is a part of a file; a binary format takes whole ones.")
        first, begun = first or Position(str(path)), -1
        self._rebatcher.skip(first.examples)
        for group, piece in self._format.read(path, self._batch_size, first.offset):
            if group != begun:
                self._begin(path, group)
                begun = group
            yield from map(self._hand, self._rebatcher.feed(piece))
        self._check_skipped()
