"""Readers: what one thread does with its files, one after the other, in any format.

A reader goes through each file from its start or from a `Position`, and tells the one behind the
last batch it gave: in the block of text, or the row group, in which that batch filled.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from typing import Protocol

import numpy as np

from psrt.core.errors import ConfigError, DataError
from psrt.core.types import U8
from psrt.data.formats import Cutter, DelimitedFormat, Format, RowGroupFormat, TextFormat
from psrt.data.slots import Batch, batch_rows
from psrt.data.sources import DataFile, FilePart, Files, Position, TextSource
from psrt.kernels.text import NEWLINE


class FileReader(Protocol):
    """What a reader thread does with its files, one after the other."""

    @property
    def position(self) -> Position:
        """Behind the last batch yielded or returned; there is one."""
        ...

    def read(self, path: DataFile, first: Position | None = None) -> Generator[Batch, None, None]:
        """Yields each batch that fills, with the examples behind `first`."""
        ...

    def finish(self) -> Batch | None:
        """The last, smaller batch, if any examples are left."""
        ...


def reader_of(
    format: Format, batch_size: int, source: TextSource, on_bytes: Callable[[int], None]
) -> FileReader:
    """A reader for one thread; `on_bytes` hears how much text was parsed."""
    if isinstance(format, TextFormat):
        return _TextReader(format, batch_size, source, on_bytes)
    if not isinstance(source, Files):
        raise ConfigError(
            "a pipe command gives lines of text, which a binary format cannot read.",
            hint="Leave the command out, or let it write MultiSlot lines.",
        )
    return _RowGroupReader(format, batch_size)


class _Counted(Protocol):
    @property
    def held(self) -> int: ...
    @property
    def skipping(self) -> int: ...


class _BatchPosition:
    """Where the batches handed out end: behind how many examples of the block last begun."""

    def __init__(self, rows: _Counted) -> None:
        self._rows = rows
        self._handed = self._before = 0
        self._block = Position("")

    def begin(self, file: DataFile, offset: int, line: int = 0) -> None:
        """A block, all before it being parsed. A batch that fills in it ends in it."""
        self._block = Position(str(file), offset, line)
        self._before = self._handed + self._rows.held - self._rows.skipping

    def hand(self, batch: Batch) -> Batch:
        self._handed += batch_rows(batch)
        return batch

    def check_skipped(self) -> None:
        """At the end of a file."""
        if self._rows.skipping:
            raise DataError(
                f"{self._block.file}: reading was to go on behind examples that are not there.",
                hint="Did the file change since the position was saved?",
            )

    @property
    def position(self) -> Position:
        return replace(self._block, examples=self._handed - self._before)


class _TextReader:
    def __init__(
        self,
        format: TextFormat,
        batch_size: int,
        source: TextSource,
        on_bytes: Callable[[int], None],
    ) -> None:
        self._parser, self._source, self._on_bytes = format.parser(batch_size), source, on_bytes
        self._has_header = isinstance(format, DelimitedFormat) and format.header
        self._account = _BatchPosition(self._parser)

    @property
    def position(self) -> Position:
        return self._account.position

    def read(self, path: DataFile, first: Position | None = None) -> Generator[Batch, None, None]:
        first = first or Position(str(path))
        parser, account = self._parser, self._account
        offset = max(first.offset, path.start if isinstance(path, FilePart) else 0)
        parser.begin_file(self._source.name(path), first.line)
        if offset and self._has_header:
            list(parser.feed(self._header(path)))
        parser.skip(first.examples)
        with closing(self._source.blocks(path, offset)) as texts:
            for text in texts:
                self._on_bytes(len(text))
                account.begin(path, offset, parser.line)
                yield from map(account.hand, parser.feed(text))
                offset += len(text)
        account.check_skipped()

    def finish(self) -> Batch | None:
        last = self._parser.finish()
        return last and self._account.hand(last)

    def _header(self, path: DataFile) -> U8:
        """The first line of the file, which is needed anywhere in it."""
        with closing(
            self._source.blocks(path.path if isinstance(path, FilePart) else path)
        ) as texts:
            text = next(texts)
            return text[: int(np.argmax(text == NEWLINE)) + 1].copy()


class _RowGroupReader:
    """Batches span files here too."""

    def __init__(self, format: RowGroupFormat, batch_size: int) -> None:
        self._format, self._batch_size = format, batch_size
        self._cutter = Cutter(batch_size)
        self._account = _BatchPosition(self._cutter)

    @property
    def position(self) -> Position:
        return self._account.position

    def read(self, path: DataFile, first: Position | None = None) -> Generator[Batch, None, None]:
        if isinstance(path, FilePart):
            raise ConfigError(f"{path} is a part of a file; a binary format takes whole ones.")
        first, begun = first or Position(str(path)), -1
        self._cutter.skip(first.examples)
        for group, piece in self._format.read(path, self._batch_size, first.offset):
            if group != begun:
                self._account.begin(path, group)
                begun = group
            yield from map(self._account.hand, self._cutter.feed(piece))
        self._account.check_skipped()

    def finish(self) -> Batch | None:
        last = self._cutter.finish()
        return last and self._account.hand(last)
