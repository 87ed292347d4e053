"""Array files in memory, written and read without a disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from psrt.core.types import Array
from psrt.storage.array_reader import ArrayFileReader, ArrayPage
from psrt.storage.array_writer import ArrayFileWriter
from psrt.storage.checksums import Buffer
from psrt.storage.failures import damaged
from psrt.storage.seals import Seal

Content = tuple[Mapping[str, Any], Mapping[str, Array]]

PAGES: tuple[Content, ...] = (
    (
        {"table": "emb", "shards": [0, 4]},
        {
            "ids": np.array([7, -1, 1 << 40], np.int64),
            "rows": np.arange(6, dtype=np.float32).reshape(3, 2) / 3,
        },
    ),
    ({}, {"empty": np.empty((0, 4), np.float16), "scalar": np.array(2.5)}),
    (
        {"table": "emb", "shards": [4, 8]},
        {"ids": np.array([8, 9], np.int64), "bytes": np.arange(130, dtype=np.uint8)},
    ),
)


class MemoryWriter:
    """Collects what is written."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, *buffers: Buffer) -> None:
        for buffer in buffers:
            self.data += buffer


class MemoryReader:
    """A file of these bytes."""

    def __init__(self, data: bytes, name: str = "cut/emb.arrays") -> None:
        self._data, self.name, self.size_bytes = data, name, len(data)

    def read(self, offset: int, size_bytes: int) -> memoryview:
        if offset + size_bytes > self.size_bytes:
            raise damaged(self.name, f"it ends at byte {self.size_bytes}")
        return memoryview(self._data)[offset : offset + size_bytes]

    def read_ahead(self, offset: int, size_bytes: int) -> None:
        """Do nothing."""


def written(pages: Sequence[Content] = PAGES) -> tuple[bytes, Seal]:
    """Return the bytes and the seal of a file of these pages."""
    out = MemoryWriter()
    file = ArrayFileWriter(out)
    for meta, arrays in pages:
        file.page(meta, arrays)
    seal = file.finish()
    return bytes(out.data), seal


def read(data: bytes, seal: Seal | None = None) -> list[ArrayPage]:
    """Return all pages of a file of these bytes, verified."""
    return list(ArrayFileReader(MemoryReader(data), seal))


def assert_pages(found: Sequence[ArrayPage], expected: Sequence[Content] = PAGES) -> None:
    """Compare metas, names, dtypes, shapes and values."""
    assert [page.meta for page in found] == [meta for meta, _ in expected]
    for page, (_, arrays) in zip(found, expected, strict=True):
        assert list(page.arrays) == list(arrays)
        for name, values in arrays.items():
            assert page.arrays[name].dtype == values.dtype
            np.testing.assert_array_equal(page.arrays[name], values, strict=True)
