"""Any damage of an array file is found and named: flips, cuts, additions, swaps, forged headers."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import numpy as np
import pytest

from psrt.core.errors import ErrorCode, StorageError
from psrt.storage import array_layout as layout
from psrt.storage.array_layout import PageExtent
from psrt.storage.array_reader import ArrayFileReader
from psrt.storage.checksums import CHUNK_BYTES, checksum
from tests.support.array_files import MemoryReader, read, written

DATA, SEAL = written()
BLOCK = layout.ALIGNMENT


def flips() -> Iterator[bytes]:
    """Each bit pattern class of each byte: one bit, all bits, a random change, zero."""
    rng = random.Random(1)
    for at, value in enumerate(DATA):
        masks = {1 << rng.randrange(8), 255, rng.randrange(1, 256), value}
        for mask in masks - {0}:
            yield DATA[:at] + bytes([value ^ mask]) + DATA[at + 1 :]


def cuts() -> Iterator[bytes]:
    """Each prefix and each suffix."""
    for at in range(len(DATA)):
        yield DATA[:at]
        yield DATA[at + 1 :]


def additions() -> Iterator[bytes]:
    """A zero byte, a random byte, or a copy of a block, at each place of a block and at the end."""
    rng = random.Random(2)
    for at in range(0, len(DATA) + 1, 8):
        for more in (b"\0", rng.randbytes(3), DATA[:BLOCK], DATA[at : at + BLOCK] or b"\0", DATA):
            yield DATA[:at] + more + DATA[at:]


def blocks_moved() -> Iterator[bytes]:
    """Any two blocks swapped; any block over another one, or left out."""
    blocks = [DATA[at : at + BLOCK] for at in range(0, len(DATA), BLOCK)]
    for i, first in enumerate(blocks):
        yield b"".join(blocks[:i] + blocks[i + 1 :])
        for j, second in enumerate(blocks):
            if first != second:
                yield b"".join(second if k == i else block for k, block in enumerate(blocks))
                swapped = {i: second, j: first}
                yield b"".join(swapped.get(k, block) for k, block in enumerate(blocks))


def ranges_lost() -> Iterator[bytes]:
    """Random ranges as zeros, as random bytes, or from elsewhere in the file."""
    rng = random.Random(3)
    for _ in range(3000):
        start, end = sorted(rng.sample(range(len(DATA) + 1), 2))
        elsewhere = rng.randrange(len(DATA) - (end - start) + 1)
        other = DATA[elsewhere : elsewhere + end - start]
        for new in (bytes(end - start), rng.randbytes(end - start), other):
            if new != DATA[start:end]:
                yield DATA[:start] + new + DATA[end:]


DAMAGES = {each.__name__: each for each in (flips, cuts, additions, blocks_moved, ranges_lost)}


@pytest.mark.parametrize("name", DAMAGES)
def test_every_damage_is_found(name: str) -> None:
    missed = [number for number, data in enumerate(DAMAGES[name]()) if not is_found(data)]

    assert missed == []


def is_found(data: bytes) -> bool:
    """True if reading raises the error of the catalogue that names the file; others pass."""
    try:
        read(data)
    except StorageError as error:
        return error.code == ErrorCode.FILE_DAMAGED and "cut/emb.arrays" in error.message
    return False


def test_these_are_more_than_ten_thousand_damages() -> None:
    assert sum(1 for damage in DAMAGES.values() for _ in damage()) > 10_000


def test_swapped_chunks_of_one_array_are_found() -> None:
    values = np.random.default_rng(1).integers(0, 255, 2 * CHUNK_BYTES, np.uint8)
    data, _ = written([({}, {"values": values})])
    at = data.index(values[:64].tobytes())
    first, second = data[at : at + CHUNK_BYTES], data[at + CHUNK_BYTES : at + 2 * CHUNK_BYTES]

    assert is_found(data[:at] + second + first + data[at + 2 * CHUNK_BYTES :])


def test_a_page_of_another_file_is_found() -> None:
    other, _ = written([({"table": "xyz", "shards": [0, 4]}, {"ids": np.zeros(3, np.int64)})])
    values = {"ids": np.ones(3, np.int64)}
    mine, _ = written([({"table": "emb", "shards": [0, 4]}, values)])
    page = slice(layout.START_BYTES, len(mine) - 128)

    assert len(mine) == len(other)
    assert is_found(mine[: page.start] + other[page] + mine[page.stop :])


def test_the_error_names_file_page_array_and_bytes() -> None:
    values = np.zeros(3 * CHUNK_BYTES, np.uint8)
    data, _ = written([({}, {}), ({}, {"ids": np.zeros(8, np.int64), "rows": values})])
    at = len(data) - 128 - CHUNK_BYTES
    start = at - 2 * CHUNK_BYTES

    with pytest.raises(StorageError) as caught:
        read(data[:at] + b"\1" + data[at + 1 :])

    assert caught.value.message == (
        "cut/emb.arrays is damaged: page 1, at byte 128: array rows, bytes "
        f"{start + 2 * CHUNK_BYTES} to {start + 3 * CHUNK_BYTES}, does not have its checksum. "
        "psrt did not use these bytes."
    )


def test_a_file_of_a_newer_version_is_named_as_such() -> None:
    newer = DATA[:8] + (2).to_bytes(4, "little") + DATA[12:56]

    with pytest.raises(StorageError, match="array file of version 2, this psrt reads 1"):
        read(newer + checksum(newer).to_bytes(8, "little") + DATA[64:])


def forged(text: bytes, page_bytes: int | None = None, header_bytes: int | None = None) -> bytes:
    """A file of one page with any JSON in its header, and checksums that fit."""
    size = 32 + len(text) + len(layout.padding(32 + len(text)))
    body = text.ljust(size - 32, b"\0")
    head = layout._HEAD.pack(b"PAGE", 0, header_bytes or size, page_bytes or size, 0)[:-8]
    header = head + checksum(head, body).to_bytes(8, "little") + body
    extent = PageExtent(64, len(header), layout.header_checksum(header))
    return layout.start() + header + layout.index_and_trailer([extent])


def forged_array(**members: object) -> bytes:
    entry = {"name": "a", "dtype": "int8", "shape": [0], "sums": ""} | members
    return forged(json.dumps({"meta": {}, "arrays": [entry]}).encode())


def test_a_forged_file_that_is_legal_is_read() -> None:
    assert read(forged_array())[0].arrays["a"].shape == (0,)


@pytest.mark.parametrize(
    "data",
    [
        forged(b""),
        forged(b"{"),
        forged(b"[]"),
        forged(b"null"),
        forged(b"\xff\xfe"),
        forged(b"[" * 100_000),
        forged(b"9" * 10_000),
        forged(b'{"meta": {}}'),
        forged(b'{"meta": [], "arrays": []}'),
        forged(b'{"meta": {}, "arrays": 5}'),
        forged(b'{"meta": {}, "arrays": [[]]}'),
        forged(b'{"meta": {}, "arrays": [null]}'),
        forged(b'{"meta": {}, "arrays": []}', page_bytes=1 << 60),
        forged(b'{"meta": {}, "arrays": []}', header_bytes=1 << 60),
        forged(b'{"meta": {}, "arrays": []}', header_bytes=32),
        forged_array(shape=[1 << 62]),
        forged_array(shape=[1 << 62, 1 << 62]),
        forged_array(shape=[-1]),
        forged_array(shape=[-8, -8]),
        forged_array(shape=[1.0]),
        forged_array(shape=[True]),
        forged_array(shape=["1"]),
        forged_array(shape="12"),
        forged_array(shape=5),
        forged_array(shape=None),
        forged_array(shape=[0] * 9),
        forged_array(shape=[10**4000]),
        forged_array(dtype="object"),
        forged_array(dtype="float128"),
        forged_array(dtype=["int8"]),
        forged_array(name=5),
        forged_array(name=[]),
        forged_array(sums="00"),
        forged_array(sums="0" * 1600),
        forged_array(sums="xyz"),
        forged_array(sums=7),
        forged_array(sums=None),
    ],
)
def test_forged_headers_with_fitting_checksums_are_refused_without_allocating(data: bytes) -> None:
    assert is_found(data)


@pytest.mark.parametrize(
    ("pages", "index_at", "size"),
    [(1 << 31, 64, 128), (0, 1 << 60, 128), (0, 64, 1 << 60), (0, 0, 128), (3, 64, 128)],
)
def test_forged_trailers_are_refused(pages: int, index_at: int, size: int) -> None:
    covered = checksum(layout.start())
    trailer = layout._TRAILER.pack(b"PSRTEND\n", 1, pages, index_at, size, covered, 0)

    assert is_found(layout.start() + layout._with_checksum(trailer))


@pytest.mark.parametrize("extent", [(0, 64), (64, 0), (64, 1 << 60), (128, 64), (64, 65)])
def test_forged_indexes_are_refused(extent: tuple[int, int]) -> None:
    index = np.array([(*extent, 1)], layout._INDEX).tobytes()
    index += layout.padding(len(index))
    covered = checksum(layout.start(), index)
    trailer = layout._TRAILER.pack(b"PSRTEND\n", 1, 1, 128, 256, covered, 0)

    assert is_found(layout.start() + bytes(64) + index + layout._with_checksum(trailer))


def test_a_file_that_shrinks_while_it_is_read_is_found() -> None:
    file = MemoryReader(DATA)
    pages = ArrayFileReader(file)

    file.size_bytes = 100

    with pytest.raises(StorageError, match="it ends at byte 100"):
        list(pages)
