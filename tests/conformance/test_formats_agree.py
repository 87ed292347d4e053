"""All readers on the same records: whatever the format, compression or storage, equal batches."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from psrt.core.tensors import Ragged
from psrt.data.convert.criteo import convert, slots
from psrt.data.convert.sharded import Destination, Split
from psrt.data.formats.formats import format_named
from psrt.data.reading.queue import QueueReader
from psrt.data.slots import Batch, Slot

RECORDS, BATCH = 1000, 64
LABEL, IDS, VALUES = Slot("label", "float", 1), Slot("ids", "uint64"), Slot("values", "float")
SPARSE = (LABEL, IDS, VALUES)
WIDE = (*SPARSE, Slot("pair", "float", 2), Slot("item", "uint64", 1))


@dataclass(frozen=True)
class Record:
    label: float
    ids: list[int]
    values: list[float]
    pair: tuple[float, float]
    item: int


def made_up() -> list[Record]:
    draw = random.Random(7)
    records = []
    for _ in range(RECORDS):
        n = draw.randrange(5)
        ids, values = (
            [draw.randrange(10**18) for _ in range(n)],
            [draw.gauss(0, 9) for _ in range(n)],
        )
        pair = (draw.gauss(0, 1e-6), draw.gauss(0, 1e6))
        records.append(Record(draw.randrange(2), ids, values, pair, draw.randrange(1 << 64)))
    return records


ALL = made_up()


def joined(values: list[float] | list[int], between: str) -> str:
    return between.join(map(repr, values))


def multislot(record: Record) -> str:
    sparse = f"1 {record.label}"
    for values in (record.ids, record.values):
        sparse += f" {len(values)} {joined(values, ' ')}".rstrip()
    return f"{sparse} 2 {record.pair[0]} {record.pair[1]} 1 {record.item}\n"


def csv_line(record: Record) -> str:
    cells = [joined(record.ids, "|"), joined(record.values, "|"), *map(repr, record.pair)]
    return ",".join([str(record.item), *cells, f'"{record.label}"']) + "\n"


def libsvm_line(record: Record) -> str:
    entries = [f"{i}:{v!r}" for i, v in zip(record.ids, record.values, strict=True)]
    return " ".join([str(record.label), *entries]) + "\n"


def pairs_line(record: Record) -> str:
    """The label has no name, and a name is of no slot."""
    words = [f"ids:{i}" for i in record.ids] + [f"values:{v!r}" for v in record.values]
    words += [f"pair:{v!r}" for v in record.pair] + [f"item:{record.item}", "other:x"]
    return " ".join([*words, str(record.label)]) + "\n"


def turned(line: str) -> str:
    """`value:name`."""
    words = [word.rpartition(":")[::-1] for word in line.split()]
    return ",".join("".join(word) if word[1] else word[0] for word in words) + "\n"


TEXT = "".join(map(multislot, ALL)).encode()
CSV = ("item,ids,values,p0,p1,label\n" + "".join(map(csv_line, ALL))).encode()
CSV_OPTIONS = {
    "columns": {
        "ids": {"column": "ids", "separator": "|"},
        "values": {"column": 2, "separator": "|"},
        "pair": ["p0", "p1"],
    }
}
PAIRS = "".join(map(pairs_line, ALL)).encode()
TURNED = "".join(turned(pairs_line(record)) for record in ALL).encode()
PAIRS_OPTIONS = {"columns": {"label": 0}}
TURNED_OPTIONS = {**PAIRS_OPTIONS, "order": "value:name", "delimiter": ","}
LIBSVM = "".join(map(libsvm_line, ALL)).encode()


def table() -> pa.Table:
    return pa.table(
        {
            "label": pa.array([r.label for r in ALL], pa.int8()),
            "ids": pa.array([r.ids for r in ALL], pa.list_(pa.int64())),
            "values": pa.array([r.values for r in ALL], pa.large_list(pa.float64())),
            "pair": pa.array([r.pair for r in ALL], pa.list_(pa.float64(), 2)),
            "item": pa.array([r.item for r in ALL], pa.uint64()),
        }
    )


def write_parquet(path: Path) -> None:
    pq.write_table(table(), path, row_group_size=150)


def write_arrow_file(path: Path) -> None:
    with pa.ipc.new_file(path, table().schema) as writer:
        writer.write_table(table(), max_chunksize=170)


def write_arrow_stream(path: Path) -> None:
    with pa.ipc.new_stream(path, table().schema) as writer:
        writer.write_table(table(), max_chunksize=170)


def in_memory(path: Path, content: bytes) -> str:
    url = f"memory://{path}"
    with fsspec.open(url, "wb") as file:
        file.write(content)
    return url


def read(path: Path | str, named: str, slots: tuple[Slot, ...], **options: object) -> list[Batch]:
    reader = QueueReader([path], slots, BATCH, format=format_named(named, slots, options))
    with reader as batches:
        return list(batches)


def assert_equal(found: list[Batch], expected: list[Batch]) -> None:
    assert len(found) == len(expected)
    for batch, other in zip(found, expected, strict=True):
        assert list(batch) == list(other)
        for name, fed in batch.items():
            values, wanted = fed, other[name]
            if isinstance(fed, Ragged):
                assert isinstance(wanted, Ragged)
                np.testing.assert_array_equal(fed.offsets, wanted.offsets)
                values, wanted = fed.values, wanted.values
            assert values.dtype == wanted.dtype
            np.testing.assert_array_equal(values, wanted)


def expected_batches(slots: tuple[Slot, ...]) -> list[Batch]:
    """The records themselves, by plain numpy."""
    batches = []
    for first in range(0, RECORDS, BATCH):
        records = ALL[first : first + BATCH]
        offsets = np.cumsum([0, *(len(r.ids) for r in records)])
        batch = {
            "label": np.array([[r.label] for r in records], np.float32),
            "ids": Ragged(np.array([i for r in records for i in r.ids], np.int64), offsets),
            "values": Ragged(np.array([v for r in records for v in r.values], np.float32), offsets),
            "pair": np.array([r.pair for r in records], np.float32),
            "item": np.array([[r.item] for r in records], np.uint64).view(np.int64),
        }
        batches.append({slot.name: batch[slot.name] for slot in slots})
    return batches


def gzipped(content: bytes) -> bytes:
    return gzip.compress(content[:1000]) + gzip.compress(content[1000:])


def zstd(content: bytes) -> bytes:
    return zstandard.compress(content[:1000]) + zstandard.compress(content[1000:])


@pytest.mark.parametrize("stored", [bytes, gzipped, zstd])
@pytest.mark.parametrize("remote", [False, True], ids=["file", "memory://"])
@pytest.mark.parametrize(
    ("named", "content", "slots", "options"),
    [
        ("multislot", TEXT, WIDE, {}),
        ("csv", CSV, WIDE, CSV_OPTIONS),
        ("csv", CSV.replace(b"\n", b"\r\n"), WIDE, CSV_OPTIONS),
        ("csv", CSV.replace(b",", b"\t"), WIDE, {**CSV_OPTIONS, "delimiter": "\t"}),
        ("pairs", PAIRS, WIDE, PAIRS_OPTIONS),
        ("pairs", TURNED, WIDE, TURNED_OPTIONS),
        ("libsvm", LIBSVM, SPARSE, {}),
    ],
    ids=["multislot", "csv", "csv-crlf", "tsv", "pairs", "pairs-turned", "libsvm"],
)
def test_text_gives_the_records(tmp_path, stored, remote, named, content, slots, options):
    path = tmp_path / "records"
    path.write_bytes(stored(content))
    place = in_memory(path, stored(content)) if remote else path

    batches = read(place, named, slots, **options)

    assert_equal(batches, expected_batches(slots))


@pytest.mark.parametrize("remote", [False, True], ids=["file", "memory://"])
@pytest.mark.parametrize(
    ("named", "write"),
    [("parquet", write_parquet), ("arrow", write_arrow_file), ("arrow", write_arrow_stream)],
    ids=["parquet", "arrow-file", "arrow-stream"],
)
def test_row_groups_give_the_records(
    tmp_path, named: str, write: Callable[[Path], None], remote: bool
):
    path = tmp_path / "records"
    write(path)
    place = in_memory(path, path.read_bytes()) if remote else path

    assert_equal(read(place, named, WIDE), expected_batches(WIDE))


def criteo_row(i: int) -> str:
    integers = [str(i * k - 3) if (i + k) % 4 else "" for k in range(13)]
    categories = [f"{i * k % 97:08x}" if (i + k) % 9 else "" for k in range(26)]
    return "\t".join([str(i % 2), *integers, *categories]) + "\n"


def test_the_criteo_table_read_directly_is_what_its_conversion_gives(tmp_path):
    source = tmp_path / "in.tsv"
    source.write_text("".join(map(criteo_row, range(RECORDS))))
    destination = Destination(tmp_path / "out", 1, replace=True)
    writer = convert([source], destination, Split(test_fraction=0), bucket_integers=True)
    layout = slots(bucket_integers=True)

    direct = read(source, "criteo", layout)
    converted = read(writer.paths("train")[0], "multislot", layout)

    for batch, other in zip(direct, converted, strict=True):
        # The conversion writes 6 decimals.
        np.testing.assert_allclose(batch["dense_input"], other["dense_input"], atol=6e-7)
        for name in set(batch) - {"dense_input"}:
            np.testing.assert_array_equal(batch[name], other[name])


def test_texts_have_the_same_ids_in_csv_parquet_and_arrow(tmp_path):
    words = ["", "red", "größe", "a|b", 'with "quotes"', "red"]
    slots = (Slot("word", "uint64", 1), Slot("words", "uint64"))
    columns = {
        "word": {"column": "word", "kind": "text", "salt": 3},
        "words": {"column": "words", "kind": "text", "separator": "|"},
    }
    lists = [word.split("|") if word else [] for word in words]
    cells = [w.replace('"', '""') for w in words]
    (tmp_path / "csv").write_text("word,words\n" + "".join(f'"{c}","{c}"\n' for c in cells))
    coded = pa.array([w or None for w in words]).dictionary_encode()
    pq.write_table(pa.table({"word": coded, "words": lists}), tmp_path / "parquet")
    plain = {
        slot: {k: v for k, v in said.items() if k != "separator"} for slot, said in columns.items()
    }

    text = read(tmp_path / "csv", "csv", slots, columns=columns)
    rows = read(tmp_path / "parquet", "parquet", slots, columns=plain)

    assert_equal(rows, text)
    assert len({int(i) for i in text[0]["word"].ravel()}) == 5


def test_batches_span_files_in_every_format(tmp_path):
    write_parquet(tmp_path / "one.parquet")
    (tmp_path / "one.csv").write_bytes(CSV)

    for path, named, options in (
        (tmp_path / "one.parquet", "parquet", {}),
        (tmp_path / "one.csv", "csv", CSV_OPTIONS),
    ):
        format = format_named(named, WIDE, options)
        with QueueReader([path, path], WIDE, BATCH, format=format) as batches:
            sizes = [len(batch["label"]) for batch in batches]
        assert sizes == [BATCH] * (2 * RECORDS // BATCH) + [2 * RECORDS % BATCH]
