"""An array file holds pages of named arrays, byte by byte as the reference says."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from psrt.core.errors import ErrorCode, StorageError
from psrt.storage.array_layout import DTYPES
from psrt.storage.array_reader import ArrayFileReader
from psrt.storage.array_writer import ArrayFileWriter
from psrt.storage.checksums import CHUNK_BYTES
from psrt.storage.seals import Seal
from tests.support.array_files import PAGES, MemoryReader, MemoryWriter, assert_pages, read, written

GOLDEN = Path(__file__).parents[2] / "golden" / "array_file_1.hex"


def test_pages_come_back_as_they_were_written() -> None:
    data, seal = written()

    assert_pages(read(data, seal))


def test_a_file_is_the_golden_bytes() -> None:
    golden = bytes.fromhex(GOLDEN.read_text())

    assert written()[0].hex() == golden.hex()
    assert_pages(read(golden))


def test_a_file_without_pages_is_128_bytes_long() -> None:
    data, seal = written([])

    assert (read(data, seal), len(data)) == ([], 128)


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_keeps_its_bits(name: str) -> None:
    values = np.arange(24 * 8, dtype=np.uint8).view(DTYPES[name]).reshape(2, 3, -1)

    page = read(written([({}, {"values": values})])[0])[0]

    assert page.arrays["values"].dtype == DTYPES[name]
    assert page.arrays["values"].tobytes() == values.tobytes()


def test_arrays_begin_at_multiples_of_64_bytes() -> None:
    marks = [np.full(n, mark, np.uint8) for mark, n in enumerate((5, 63, 64, 9), start=240)]

    data, _ = written([({}, {str(n): marks[n] for n in range(4)})])

    assert [data.index(mark.tobytes()) % 64 for mark in marks] == [0, 0, 0, 0]


def test_an_array_of_many_chunks_comes_back() -> None:
    values = np.random.default_rng(1).integers(0, 255, 3 * CHUNK_BYTES + 5, np.uint8)

    page = read(written([({}, {"values": values})])[0])[0]

    np.testing.assert_array_equal(page.arrays["values"], values)


def test_arrays_of_any_memory_order_are_stored_in_c_order() -> None:
    values = np.arange(12, dtype=np.int32).reshape(3, 4)

    page = read(written([({}, {"t": values.T, "every_second": values[:, ::2]})])[0])[0]

    np.testing.assert_array_equal(page.arrays["t"], values.T)
    np.testing.assert_array_equal(page.arrays["every_second"], values[:, ::2])


def test_contiguous_arrays_are_written_from_their_own_memory() -> None:
    values = np.arange(1 << 16, dtype=np.float32)
    pieces = []

    class Watching:
        def write(self, *buffers: bytes | memoryview) -> None:
            pieces.extend(np.frombuffer(buffer, np.uint8) for buffer in buffers)

    ArrayFileWriter(Watching()).page({}, {"values": values})

    assert any(np.shares_memory(piece, values) for piece in pieces)


def test_arrays_that_were_read_are_read_only() -> None:
    page = read(written()[0])[0]

    with pytest.raises(ValueError, match="read-only"):
        page.arrays["ids"][0] = 1


def test_pages_are_read_in_any_order() -> None:
    data, _ = written()

    file = ArrayFileReader(MemoryReader(data))

    assert len(file) == 3
    assert file.page(2).meta == {"table": "emb", "shards": [4, 8]}
    assert_pages([file.page(0)], PAGES[:1])


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (np.array([{}], object), "is object"),
        (np.array(["a"]), "is <U1"),
        (np.zeros(2, ">f4" if sys.byteorder == "little" else "<f4"), "is >f4"),
        (np.zeros(2, np.complex64), "is complex64"),
        (np.zeros((1,) * 9, np.int8), "with 9 dimensions"),
    ],
)
def test_what_is_no_array_of_fixed_numbers_is_refused(values: np.ndarray, says: str) -> None:
    out = MemoryWriter()
    file = ArrayFileWriter(out)

    with pytest.raises(ValueError, match=says):
        file.page({}, {"values": values})

    file.page(*PAGES[0])
    file.finish()
    assert_pages(read(bytes(out.data)), PAGES[:1])


@pytest.mark.parametrize("meta", [{"rate": float("nan")}, {"when": object()}])
def test_meta_data_that_is_not_json_is_refused(meta: dict) -> None:
    with pytest.raises((ValueError, TypeError)):
        ArrayFileWriter(MemoryWriter()).page(meta, {})


def test_a_file_with_the_seal_of_another_is_refused() -> None:
    data, _ = written()
    _, other = written(PAGES[:1])

    with pytest.raises(StorageError, match=r"cut/emb\.arrays is damaged: it is another file") as e:
        read(data, other)
    assert e.value.code == ErrorCode.FILE_DAMAGED


def test_a_seal_survives_a_manifest() -> None:
    _, seal = written()

    assert Seal.from_plain(seal.to_plain()) == seal
    assert seal.to_plain()["bytes"] == len(written()[0])


@pytest.mark.parametrize("plain", [None, [], {}, {"bytes": 1}, {"bytes": "x", "xxh3": "0"}])
def test_what_is_no_seal_is_a_value_error(plain: object) -> None:
    with pytest.raises(ValueError, match=r"seal|invalid"):
        Seal.from_plain(plain)


def test_ranges_of_an_array_are_read_with_their_chunks_alone() -> None:
    values = np.random.default_rng(1).standard_normal((700, 1000)).astype(np.float32)
    data, seal = written([({}, {"a": np.arange(3), "rows": values})])
    size = values.size

    for first, end in ((0, 1), (0, size), (262_143, 262_145), (500_000, 700_000), (7, 7)):
        reader = ArrayFileReader(MemoryReader(data), seal)
        assert reader.shapes(0) == {"a": (3,), "rows": (700, 1000)}
        found = reader.elements(0, "rows", first, end)
        assert found.tobytes() == values.reshape(-1)[first:end].tobytes()

    changed = bytearray(data)
    changed[data.index(values.tobytes()) + 2_000_000] ^= 1
    reader = ArrayFileReader(MemoryReader(bytes(changed)), seal)
    assert len(reader.elements(0, "rows", 0, 262_144)) == 262_144
    with pytest.raises(StorageError, match=r"page 0, .* array rows, bytes \d+ to \d+, does not"):
        reader.elements(0, "rows", 400_000, 400_001)
    with pytest.raises(KeyError):
        reader.elements(0, "b", 0, 1)
