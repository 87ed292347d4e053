"""64-bit checksums (XXH3) of buffers and of their chunks.

XXH3 reads memory faster than disks write it, and finds accidental damage. It does not resist
forgery: whoever may write the files may change them and their checksums.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import xxhash

Buffer: TypeAlias = bytes | bytearray | memoryview

CHUNK_BYTES = 1 << 20
"""Bytes of an array under one checksum."""


def checksum(*buffers: Buffer) -> int:
    """Return the checksum of buffers one after the other."""
    state = xxhash.xxh3_64()
    for buffer in buffers:
        state.update(buffer)
    return state.intdigest()


def chunks(size_bytes: int) -> Iterator[tuple[int, int]]:
    """Start and end of each chunk of `size_bytes` bytes."""
    for start in range(0, size_bytes, CHUNK_BYTES):
        yield start, min(start + CHUNK_BYTES, size_bytes)


def chunk_sums(data: memoryview) -> list[int]:
    """Return the checksum of each chunk of `data`, a view of bytes."""
    return [xxhash.xxh3_64_intdigest(data[start:end]) for start, end in chunks(len(data))]
