"""The bytes of an array file, version 1: headers, index, trailer.

    64 bytes         start: magic, version, checksum
    page 0           header (magic, number, sizes, checksum, JSON), then its arrays
    page 1 …
    index            offset, size and header checksum of each page
    64 bytes         trailer: sizes, checksum of start and index, its own checksum

Everything begins at a multiple of 64 bytes; gaps are zeros. All functions here are pure: they raise
`Damage` for bytes that are not legal. Nothing is allocated by the claim of a header: sizes are
compared with those of the file first. Reference: docs/reference/checkpoint-format.md.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from psrt.storage.checksums import CHUNK_BYTES, Buffer, checksum

VERSION = 1
ALIGNMENT = 64
MAX_JSON_BYTES = 64 << 20
MAX_DIMENSIONS = 8

_START = struct.Struct("<8sI44xQ")
_HEAD = struct.Struct("<4sIQQQ")
_TRAILER = struct.Struct("<8sIIQQQ16xQ")
_INDEX = np.dtype([("offset", "<u8"), ("size", "<u8"), ("checksum", "<u8")])
_MAGIC, _PAGE_MAGIC, _END_MAGIC = b"PSRTARR\n", b"PAGE", b"PSRTEND\n"

START_BYTES = _START.size
HEAD_BYTES = _HEAD.size
TRAILER_BYTES = _TRAILER.size

_NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
DTYPES = {name: np.dtype(name) for name in (*_NUMBERS, "float16", "float32", "float64")}
"""The dtypes of arrays, little-endian; numbers of other formats are stored as their words."""


class Damage(Exception):
    """Bytes that are not legal, in words; the reader adds the file."""


@dataclass(frozen=True)
class ArrayEntry:
    """An array of a page: name, dtype, shape, and the checksum of each of its chunks."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    sums: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        return math.prod(self.shape) * DTYPES[self.dtype].itemsize


@dataclass(frozen=True)
class PageExtent:
    """The place of a page in its file, and the checksum of its header."""

    offset: int
    size_bytes: int
    checksum: int


@dataclass(frozen=True)
class PageHeader:
    """Contents of a page's header; arrays follow from byte `header_bytes` of the page on."""

    meta: dict[str, Any]
    arrays: tuple[ArrayEntry, ...]
    header_bytes: int


def aligned(size_bytes: int) -> int:
    """Return the next multiple of 64."""
    return -(-size_bytes // ALIGNMENT) * ALIGNMENT


def padding(size_bytes: int) -> bytes:
    """Return the zeros that follow `size_bytes` bytes."""
    return bytes(aligned(size_bytes) - size_bytes)


def start() -> bytes:
    """Return the first 64 bytes of every file of this version."""
    return _with_checksum(_START.pack(_MAGIC, VERSION, 0))


def check_start(data: Buffer) -> None:
    """Raise `Damage` unless `data` are the first 64 bytes of a file of this version."""
    magic, version, found = _START.unpack(data)
    if magic != _MAGIC:
        raise Damage("it does not begin like an array file")
    if found != checksum(data[:-8]):
        raise Damage("bytes 0 to 64 (its start) do not have their checksum")
    if version != VERSION:
        raise Damage(f"it is an array file of version {version}, this psrt reads {VERSION}")


def page_header(number: int, meta: Mapping[str, Any], arrays: Sequence[ArrayEntry]) -> bytes:
    """Return the header of page `number`; raises `ValueError` for meta data that is not JSON."""
    text = json.dumps(
        {"meta": dict(meta), "arrays": [_to_plain(entry) for entry in arrays]},
        allow_nan=False,
        separators=(",", ":"),
    ).encode("ascii")
    if len(text) > MAX_JSON_BYTES:
        raise ValueError(f"meta data of {len(text)} bytes, at most {MAX_JSON_BYTES} are allowed")
    text += padding(HEAD_BYTES + len(text))
    size = HEAD_BYTES + len(text) + sum(aligned(entry.size_bytes) for entry in arrays)
    head = _HEAD.pack(_PAGE_MAGIC, number, HEAD_BYTES + len(text), size, 0)[:-8]
    return head + checksum(head, text).to_bytes(8, "little") + text


def header_checksum(header: bytes) -> int:
    """Return the checksum that a page's header contains."""
    return int.from_bytes(header[HEAD_BYTES - 8 : HEAD_BYTES], "little")


def read_page_header(
    page: memoryview, number: int, expected: int, page_bytes: int = 0
) -> PageHeader:
    """Return the checked header of page `number`, whose index entry has the checksum `expected`.

    `page` is the page, or the first `header_bytes_of` bytes of one of `page_bytes`.
    """
    magic, written, header_bytes, size, found = _HEAD.unpack(page[:HEAD_BYTES])
    page_bytes = page_bytes or len(page)
    fits = HEAD_BYTES < header_bytes <= min(len(page), MAX_JSON_BYTES + ALIGNMENT)
    if magic != _PAGE_MAGIC or size != page_bytes or not fits or header_bytes % ALIGNMENT:
        raise Damage("there is no header of a page of this size")
    sums = {expected, found, checksum(page[: HEAD_BYTES - 8], page[HEAD_BYTES:header_bytes])}
    if written != number or len(sums) > 1:
        raise Damage("its header does not have the checksum of the index")
    try:
        plain = json.loads(bytes(page[HEAD_BYTES:header_bytes]).rstrip(b"\0"))
        meta, arrays = plain["meta"], tuple(_from_plain(each) for each in plain["arrays"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise Damage(f"its header is not one ({type(error).__name__}: {error})") from error
    return _checked(PageHeader(meta, arrays, header_bytes), page_bytes)


def header_bytes_of(head: memoryview, page_bytes: int) -> int:
    """Return the bytes of a header from its first `HEAD_BYTES`, unchecked but within its limits."""
    limit = min(page_bytes, MAX_JSON_BYTES + ALIGNMENT)
    return min(max(int(_HEAD.unpack(head)[2]), HEAD_BYTES), limit)


def index_and_trailer(extents: Sequence[PageExtent]) -> bytes:
    """Return what follows the last page."""
    rows = [(each.offset, each.size_bytes, each.checksum) for each in extents]
    index = np.array(rows, _INDEX).tobytes()
    index += padding(len(index))
    at = extents[-1].offset + extents[-1].size_bytes if extents else START_BYTES
    size = at + len(index) + TRAILER_BYTES
    covered = checksum(start(), index)
    trailer = _TRAILER.pack(_END_MAGIC, VERSION, len(rows), at, size, covered, 0)
    return index + _with_checksum(trailer)


def read_trailer(data: Buffer, file_bytes: int) -> tuple[int, int]:
    """Return the number of pages and the offset of the index, from the last 64 bytes."""
    magic, version, pages, index_at, size, _, found = _TRAILER.unpack(data)
    if magic != _END_MAGIC:
        raise Damage(f"it ends at byte {file_bytes} without a trailer")
    if found != checksum(data[:-8]):
        raise Damage("its last 64 bytes (the trailer) do not have their checksum")
    if version != VERSION:
        raise Damage(f"its trailer has version {version}, this psrt reads {VERSION}")
    if size != file_bytes:
        raise Damage(f"it is {file_bytes} bytes long, was written with {size}")
    if index_at + aligned(pages * _INDEX.itemsize) + TRAILER_BYTES != file_bytes:
        raise Damage("its trailer contradicts itself")
    return pages, index_at


def read_index(start: Buffer, index: Buffer, trailer: Buffer) -> list[PageExtent]:
    """Return the extents of all pages, which follow one another from the start to the index."""
    _, _, pages, index_at, _, covered, _ = _TRAILER.unpack(trailer)
    if checksum(start, index) != covered:
        raise Damage(f"the index of its pages, at byte {index_at}, does not have its checksum")
    rows = np.frombuffer(index, _INDEX, pages).tolist()
    extents = [PageExtent(*(int(value) for value in row)) for row in rows]
    at = START_BYTES
    for number, each in enumerate(extents):
        if each.offset != at or each.size_bytes < HEAD_BYTES or each.size_bytes % ALIGNMENT:
            raise Damage(f"its index has no place for page {number}")
        at += each.size_bytes
    if at != index_at:
        raise Damage("the pages of its index do not end where the index begins")
    return extents


def trailer_checksum(trailer: Buffer) -> int:
    """Return the checksum that a trailer contains, which covers the whole file."""
    return int.from_bytes(trailer[-8:], "little")


def _with_checksum(data: bytes) -> bytes:
    return data[:-8] + checksum(data[:-8]).to_bytes(8, "little")


def _to_plain(entry: ArrayEntry) -> dict[str, Any]:
    sums = "".join(f"{each:016x}" for each in entry.sums)
    return {"name": entry.name, "dtype": entry.dtype, "shape": list(entry.shape), "sums": sums}


def _from_plain(plain: Any) -> ArrayEntry:
    shape, sums = plain["shape"], plain["sums"]
    if len(shape) > MAX_DIMENSIONS or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(f"shape {shape}")
    entry = ArrayEntry(
        name=plain["name"],
        dtype=plain["dtype"],
        shape=tuple(shape),
        sums=tuple(int(sums[at : at + 16], 16) for at in range(0, len(sums), 16)),
    )
    if not isinstance(entry.name, str) or entry.dtype not in DTYPES:
        raise ValueError(f"array {entry.name!r} of dtype {entry.dtype!r}")
    return entry


def _checked(header: PageHeader, page_bytes: int) -> PageHeader:
    """Return a header whose arrays fill its page exactly, each with the sums of its chunks."""
    sizes = [entry.size_bytes for entry in header.arrays]
    if header.header_bytes + sum(map(aligned, sizes)) != page_bytes:
        raise Damage(f"its arrays do not fill the {page_bytes} bytes of its page")
    for entry, size in zip(header.arrays, sizes, strict=True):
        if len(entry.sums) != -(-size // CHUNK_BYTES):
            raise Damage(f"array {entry.name} has {len(entry.sums)} checksums")
    if len({entry.name for entry in header.arrays}) < len(sizes) or type(header.meta) is not dict:
        raise Damage("it names an array twice, or has no meta data")
    return header
