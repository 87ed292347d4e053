"""Writes an array file page by page, without copying arrays.

The checksums of a page's arrays are in its header, so that each page is hashed, then written; XXH3
reads memory about ten times faster than disks write. Arrays must not change during `page`. Belongs
to one thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from psrt.core.types import Array
from psrt.storage import array_layout as layout
from psrt.storage.array_layout import ArrayEntry, PageExtent
from psrt.storage.checksums import chunk_sums
from psrt.storage.directory import AppendWriter
from psrt.storage.seals import Seal


class ArrayFileWriter:
    """Appends pages to `out`; the file is legal once `finish` has returned its seal."""

    def __init__(self, out: AppendWriter) -> None:
        self._out = out
        self._extents: list[PageExtent] = []
        self._end = layout.START_BYTES
        out.write(layout.start())

    @property
    def size_bytes(self) -> int:
        """Bytes written so far."""
        return self._end

    def page(self, meta: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Append a page: `meta` is JSON, `arrays` have dtypes of `array_layout.DTYPES`.

        Arrays that are not C-contiguous are copied. Raises `ValueError` for other dtypes, more than
        8 dimensions, or meta data that is not JSON; then the file is as before.
        """
        for name, values in arrays.items():
            _check(name, values)
        pieces = [_bytes_of(values) for values in arrays.values()]
        entries = [
            ArrayEntry(name, values.dtype.name, values.shape, tuple(chunk_sums(data)))
            for (name, values), data in zip(arrays.items(), pieces, strict=True)
        ]
        header = layout.page_header(len(self._extents), meta, entries)
        size = len(header) + sum(layout.aligned(len(data)) for data in pieces)
        self._out.write(header, *(part for data in pieces for part in _padded(data)))
        self._extents.append(PageExtent(self._end, size, layout.header_checksum(header)))
        self._end += size

    def finish(self) -> Seal:
        """Write index and trailer; nothing can be appended afterwards."""
        tail = layout.index_and_trailer(self._extents)
        self._out.write(tail)
        self._end += len(tail)
        return Seal(self._end, layout.trailer_checksum(tail))


def _check(name: str, values: Array) -> None:
    dtype = values.dtype
    if layout.DTYPES.get(dtype.name) != dtype or values.ndim > layout.MAX_DIMENSIONS:
        raise ValueError(
            f"array {name} is {dtype} with {values.ndim} dimensions; array files hold "
            f"{', '.join(layout.DTYPES)} with at most {layout.MAX_DIMENSIONS}"
        )


def _bytes_of(values: Array) -> memoryview:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8).data


def _padded(data: memoryview) -> tuple[memoryview | bytes, ...]:
    zeros = layout.padding(len(data))
    return (data, zeros) if zeros else (data,)
