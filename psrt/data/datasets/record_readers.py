"""Readers of records: what one thread does with its files, in any format, to keep them."""

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
    """Belongs to one thread."""

    def read(self, path: DataFile) -> Generator[Records, None, None]:
        """All records of a file, in pieces that span no other."""
        ...


class PackedBatches:
    """What a `FileReader`, a new one for each file, gives as batches."""

    def __init__(self, reader: Callable[[], FileReader], packer: Packer) -> None:
        self._reader, self._packer = reader, packer

    def read(self, path: DataFile) -> Generator[Records, None, None]:
        reader = self._reader()
        with closing(reader.read(path)) as batches:
            yield from map(self._packer.pack, batches)
        if last := reader.finish():
            yield self._packer.pack(last)


class ParsedLines:
    """MultiSlot text; `on_bytes` hears how much was parsed."""

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
