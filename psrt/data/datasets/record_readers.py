"""Readers of one thread that return records, in any format."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from typing import Protocol

from psrt.data.datasets.packing import Packer
from psrt.data.datasets.record_lines import RecordParser
from psrt.data.datasets.records import Records
from psrt.data.reading import FileReader
from psrt.data.sources import DataFile, FilePart, TextSource


class RecordReader(Protocol):
    """Reads whole files; belongs to one thread."""

    def read(self, path: DataFile) -> Generator[Records, None, None]:
        """Yield all records of a file, in pieces of this file only."""
        ...


class PackedBatches:
    """Batches of a `FileReader`, a new one for each file, packed into records."""

    def __init__(self, reader: Callable[[], FileReader], packer: Packer) -> None:
        self._reader, self._packer = reader, packer

    def read(self, path: DataFile) -> Generator[Records, None, None]:
        reader = self._reader()
        with closing(reader.read(path)) as batches:
            yield from map(self._packer.pack, batches)
        if last := reader.finish():
            yield self._packer.pack(last)


class ParsedLines:
    """MultiSlot text; `on_bytes` is called with the bytes parsed."""

    def __init__(
        self, parser: RecordParser, source: TextSource, on_bytes: Callable[[int], None]
    ) -> None:
        self._parser, self._source, self._on_bytes = parser, source, on_bytes

    def read(self, path: DataFile) -> Generator[Records, None, None]:
        self._parser.begin_file(self._source.name(path))
        start = path.start if isinstance(path, FilePart) else 0
        with closing(self._source.blocks(path, start)) as texts:
            for text in texts:
                self._on_bytes(len(text))
                yield from self._parser.feed(text)
        if last := self._parser.finish():
            yield last
