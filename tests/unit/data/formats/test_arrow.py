"""Arrow and Parquet files: where they end, rows that messages name, texts of every type."""

from __future__ import annotations

import io
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

from psrt.core.errors import DataError
from psrt.core.tensors import Ragged
from psrt.data.formats.formats import format_named
from psrt.data.reading.queue import QueueReader
from psrt.data.slots import Batch, Slot

Y, IDS, FLOATS = Slot("y", "float", 1), Slot("y", "uint64"), Slot("y", "float")
ROWS = pa.record_batch({"y": [1.0, 2.0]})
END_BYTES = 8


def written(open_writer: Callable[..., Any], batches: int, **options: Any) -> bytes:
    sink = io.BytesIO()
    with open_writer(sink, ROWS.schema, options=ipc.IpcWriteOptions(**options)) as writer:
        for _ in range(batches):
            writer.write_batch(ROWS)
    return sink.getvalue()


STREAM, FILE = written(ipc.new_stream, 2), written(ipc.new_file, 2)
OLD_STREAM = written(ipc.new_stream, 2, use_legacy_format=True)


def batches_of(path: Path, named: str, slot: Slot, **column: Any) -> list[Batch]:
    format = format_named(named, (slot,), {"columns": {"y": {"column": "y", **column}}})
    with QueueReader([path], (slot,), 1, format=format) as batches:
        return list(batches)


def read(path: Path, stored: bytes) -> int:
    path.write_bytes(stored)
    return len(batches_of(path, "arrow", Y))


def read_column(directory: Path, values: Any, slot: Slot, **column: Any) -> list[Batch]:
    pq.write_table(pa.table({"y": values}), directory / "in.parquet")
    return batches_of(directory / "in.parquet", "parquet", slot, **column)


@pytest.mark.parametrize(
    ("stored", "rows"),
    [
        (STREAM + STREAM, 8),
        (written(ipc.new_stream, 0) + STREAM, 4),
        (OLD_STREAM + STREAM, 8),
        (written(ipc.new_stream, 2, compression="zstd") * 2, 8),
        (FILE, 4),
        (written(ipc.new_file, 0), 0),
        (written(ipc.new_file, 2, use_legacy_format=True), 4),
    ],
)
def test_streams_behind_each_other_are_read_and_files_to_their_end(tmp_path, stored, rows):
    assert read(tmp_path / "in.arrow", stored) == rows


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (STREAM[:-END_BYTES], "no end marker"),
        (STREAM[:-4], "metadata length"),
        (OLD_STREAM[:-4], "no end marker"),
        (STREAM + STREAM[:-END_BYTES], "no end marker"),
        (STREAM + b"garbage", ""),
        (STREAM + FILE, ""),
        (FILE + FILE, "its batches end at byte .* its footer begins at"),
        (written(ipc.new_file, 1) + FILE, "its batches end at byte"),
        (FILE + STREAM, "Not an Arrow file"),
    ],
)
def test_what_ends_too_early_or_too_late_is_no_whole_file(tmp_path, stored, message):
    with pytest.raises(DataError, match=f"in.arrow: not a whole Arrow IPC file .*{message}"):
        read(tmp_path / "in.arrow", stored)


@pytest.mark.parametrize(
    ("values", "slot", "message"),
    [
        (pa.array([[1], [2, None]]), IDS, "row 2, .* a value, found null"),
        (pa.array([[1.0, 2.0], [3.0, 1e300]]), FLOATS, r"row 2, .* float32, found 1e\+300"),
        (pa.array([None, 1e300]), FLOATS, "row 2, .* float32"),
        (pa.array([1, 2**53 + 1]), Y, r"row 2, .* within ±2\^53.* found 9007199254740993"),
    ],
)
def test_the_row_of_a_bad_value_is_named_also_in_lists(tmp_path, values, slot, message):
    with pytest.raises(DataError, match=message):
        read_column(tmp_path, values, slot)


@pytest.mark.parametrize("type", ["large_string", "string_view", "binary", "binary_view"])
def test_texts_have_the_same_hashes_whatever_their_type(tmp_path, type):
    words: list[Any] = ["ab", None, "a word of more than twelve bytes"]
    hashes = []
    for kind in ("string", type):
        values = [w.encode() if w and "binary" in kind else w for w in words]
        batches = read_column(tmp_path, pa.array(values, getattr(pa, kind)()), IDS, kind="text")
        hashes.append([b["y"].values.item() for b in batches if isinstance(b["y"], Ragged)])

    assert hashes[0] == hashes[1]
    assert all(first != second for first, second in pairwise(hashes[0]))


def test_a_name_that_two_columns_have_is_refused(tmp_path):
    columns = [pa.array([1.0]), pa.array([2.0])]
    pq.write_table(pa.Table.from_arrays(columns, names=["y", "y"]), tmp_path / "in.parquet")

    with pytest.raises(DataError, match=r"in.parquet has more than one column 'y', .* slot 'y'"):
        batches_of(tmp_path / "in.parquet", "parquet", Y)
    [batch] = batches_of(tmp_path / "in.parquet", "parquet", Y, column=1)
    assert batch["y"].item() == 2  # type: ignore[union-attr]


@pytest.mark.parametrize("named", ["arrow", "parquet"])
def test_a_table_that_is_written_while_it_is_read_is_refused(tmp_path, named):
    path = tmp_path / "in"
    path.write_bytes(STREAM)
    if named == "parquet":
        pq.write_table(pa.table(ROWS.to_pydict()), path, row_group_size=1)
    groups = format_named(named, (Y,)).groups(path)  # type: ignore[union-attr]
    next(groups)

    with path.open("ab") as file:
        file.write(b"more")

    with pytest.raises(DataError, match="in: the file was changed while it was read"):
        list(groups)
