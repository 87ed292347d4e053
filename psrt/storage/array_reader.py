"""Reads and verifies pages of an array file.

A page is read whole into memory of its own and verified there, so that later changes of the file or
of the disk's cache cannot reach its arrays. Files are not mapped: a disk that fails to read, or a
file that is cut meanwhile, would end the process (SIGBUS) instead of raising an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from psrt.core.types import Array, Shape
from psrt.storage import array_layout as layout
from psrt.storage.array_layout import ArrayEntry, Damage, PageExtent, PageHeader
from psrt.storage.checksums import CHUNK_BYTES, checksum, chunks
from psrt.storage.directory import RangeReader
from psrt.storage.failures import damaged
from psrt.storage.seals import Seal

T = TypeVar("T")

HEADER_GUESS_BYTES = 4096
"""Bytes that contain the header of most pages."""


@dataclass(frozen=True)
class ArrayPage:
    """A verified page: `meta` as it was written, and read-only arrays by name."""

    meta: dict[str, Any]
    arrays: dict[str, Array]


class ArrayFileReader:
    """The pages of one file, in any order. Several threads may read pages at the same time.

    Opening reads the start, the index and the trailer, and compares the file with its `seal` if the
    caller has one. Raises `StorageError` FILE_DAMAGED naming file, page, array and bytes.
    """

    def __init__(self, file: RangeReader, seal: Seal | None = None) -> None:
        self._file = file
        self._headers: dict[int, PageHeader] = {}
        try:
            self.seal, self._extents = _opened(file)
            if seal is not None and seal != self.seal:
                raise Damage(f"it is another file: its seal is {self.seal}, expected {seal}")
        except Damage as damage:
            raise damaged(file.name, str(damage)) from damage

    def __len__(self) -> int:
        """Number of pages."""
        return len(self._extents)

    def __iter__(self) -> Iterator[ArrayPage]:
        """All pages in the order of writing."""
        return (self.page(number) for number in range(len(self)))

    def page_bytes(self, number: int) -> int:
        """Return the memory that reading a page takes."""
        return self._extents[number].size_bytes

    def page(self, number: int) -> ArrayPage:
        """Read and verify page `number`."""
        extent = self._extents[number]
        data = self._file.read(extent.offset, extent.size_bytes)
        return self._tried(number, lambda: _verified(data, number, extent))

    def read_ahead(self, number: int) -> None:
        """Announce that page `number` is read soon."""
        extent = self._extents[number]
        self._file.read_ahead(extent.offset, extent.size_bytes)

    def shapes(self, number: int) -> dict[str, Shape]:
        """Read and verify the header of page `number`; returns the shape of each array by name."""
        return {entry.name: entry.shape for entry in self._header(number).arrays}

    def elements(self, number: int, name: str, first: int, end: int) -> Array:
        """Elements `first` to `end` − 1 (n,) of the flat form of one array of page `number`.

        Reads the chunks that contain them, verified, and not the rest of the page. Raises
        `KeyError` if the page has no such array.
        """
        header, at = self._header(number), 0
        for entry in header.arrays:
            if entry.name == name:
                break
            at += layout.aligned(entry.size_bytes)
        else:
            raise KeyError(name)
        offset = self._extents[number].offset + header.header_bytes + at
        return self._tried(number, lambda: self._range(entry, offset, first, end))

    def _range(self, entry: ArrayEntry, offset: int, first: int, end: int) -> Array:
        dtype = layout.DTYPES[entry.dtype]
        start, stop = first * dtype.itemsize, end * dtype.itemsize
        if start >= stop:
            return np.empty(0, dtype)
        chunk = start // CHUNK_BYTES
        begin, last = (
            chunk * CHUNK_BYTES,
            min(entry.size_bytes, -(-stop // CHUNK_BYTES) * CHUNK_BYTES),
        )
        data = self._file.read(offset + begin, last - begin)
        for index, (low, high) in enumerate(chunks(len(data))):
            if checksum(data[low:high]) != entry.sums[chunk + index]:
                raise _wrong(entry, offset + begin + low, offset + begin + high, "checksum")
        return np.frombuffer(data[start - begin : stop - begin], dtype)

    def _header(self, number: int) -> PageHeader:
        known = self._headers.get(number)
        if known is None:
            known = self._headers[number] = self._tried(number, lambda: self._read_header(number))
        return known

    def _read_header(self, number: int) -> PageHeader:
        extent = self._extents[number]
        size = extent.size_bytes
        data = self._file.read(extent.offset, min(size, HEADER_GUESS_BYTES))
        needed = layout.header_bytes_of(data[: layout.HEAD_BYTES], size)
        if needed > len(data):
            data = self._file.read(extent.offset, needed)
        return layout.read_page_header(data, number, extent.checksum, size)

    def _tried(self, number: int, read: Callable[[], T]) -> T:
        """The result of `read`, whose `Damage` names the file and the page."""
        try:
            return read()
        except Damage as damage:
            where = f"page {number}, at byte {self._extents[number].offset}"
            raise damaged(self._file.name, f"{where}: {damage}") from damage

    def verify(self) -> Seal:
        """Read every byte of the file; returns its seal."""
        for number in range(len(self)):
            self.page(number)
        return self.seal


def _opened(file: RangeReader) -> tuple[Seal, list[PageExtent]]:
    size = file.size_bytes
    if size < layout.START_BYTES + layout.TRAILER_BYTES:
        raise Damage(f"it is {size} bytes long, less than an empty array file")
    start = file.read(0, layout.START_BYTES)
    layout.check_start(start)
    trailer_at = size - layout.TRAILER_BYTES
    trailer = file.read(trailer_at, layout.TRAILER_BYTES)
    pages, index_at = layout.read_trailer(trailer, size)
    index = file.read(index_at, trailer_at - index_at)
    extents = layout.read_index(start, index, trailer)
    if len(extents) != pages:
        raise Damage("its trailer has another number of pages than its index")
    return Seal(size, layout.trailer_checksum(trailer)), extents


def _verified(data: memoryview, number: int, extent: PageExtent) -> ArrayPage:
    header = layout.read_page_header(data, number, extent.checksum)
    arrays, at = {}, header.header_bytes
    for entry in header.arrays:
        arrays[entry.name] = _array(data, at, entry, extent.offset)
        at += layout.aligned(entry.size_bytes)
    return ArrayPage(header.meta, arrays)


def _array(data: memoryview, at: int, entry: ArrayEntry, page_offset: int) -> Array:
    """Return the array at byte `at` of a page once its checksums are compared."""
    size = entry.size_bytes
    values = data[at : at + size]
    for (start, end), expected in zip(chunks(size), entry.sums, strict=True):
        if checksum(values[start:end]) != expected:
            raise _wrong(entry, page_offset + at + start, page_offset + at + end, "checksum")
    if any(data[at + size : at + layout.aligned(size)]):
        raise _wrong(
            entry, page_offset + at + size, page_offset + at + layout.aligned(size), "zeros"
        )
    return np.frombuffer(values, layout.DTYPES[entry.dtype]).reshape(entry.shape)


def _wrong(entry: ArrayEntry, first: int, end: int, what: str) -> Damage:
    return Damage(f"array {entry.name}, bytes {first} to {end}, does not have its {what}")
