"""A reading left behind any batch and continued from its place, for every format and source."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from psrt.core.errors import ConfigError, DataError
from psrt.core.tensors import Ragged
from psrt.data.datasets.prefixes import Prefixed
from psrt.data.formats.formats import Format, format_named
from psrt.data.reading.queue import QueueReader
from psrt.data.slots import Batch, Slot
from psrt.data.sources import sources
from psrt.data.sources.pipe import Piped
from psrt.data.sources.places import BEGINNING, DataFile, FilePart, Place, Position

X, IDS, VALUES = Slot("x", "float", 1), Slot("ids", "uint64"), Slot("values", "float")
ROWS = [23, 0, 1, 17, 40]
BATCH = 6


def multislot(path: Path, first: int, rows: int) -> Format:
    lines = [f"1 {first + i} {i % 3}{' 7' * (i % 3)}\n" for i in range(rows)]
    path.write_text("\n".join(lines))  # every other line is blank
    return format_named("multislot", (X, IDS))


def with_words(path: Path, first: int, rows: int) -> Format:
    path.write_text("".join(f"1 ins{i} 1 {first + i} 1 3\r\n" for i in range(rows)))
    return Prefixed((X, IDS), ["1 <ins_id>"])


def libsvm(path: Path, first: int, rows: int) -> Format:
    path.write_text("".join(f"{first + i} 1:2 {i + 2}:3 # {i}\n" for i in range(rows)))
    return format_named("libsvm", (X, IDS, VALUES), {"labels": "number"})


def csv(path: Path, first: int, rows: int) -> Format:
    names = ("ids", "x") if first % 2 else ("x", "ids")
    cells = [{"x": str(first + i), "ids": "3"} for i in range(rows)]
    text = "".join(",".join(row[name] for name in names) + "\n" for row in cells)
    path.write_text(",".join(names) + "\n" + text)
    return format_named("csv", (X, IDS))


def parquet(path: Path, first: int, rows: int) -> Format:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"x": np.arange(first, first + rows, dtype=np.float32)})
    pq.write_table(table, path, row_group_size=9)
    return format_named("parquet", (X,))


def arrow(path: Path, first: int, rows: int) -> Format:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"x": np.arange(first, first + rows, dtype=np.float32)})
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=9)
    return format_named("arrow", (X,))


def written(directory: Path, write: Callable[..., Format]) -> tuple[list[DataFile], Format]:
    """Files of `ROWS` rows whose `x` counts on."""
    files: list[DataFile] = []
    for number, rows in enumerate(ROWS):
        files.append(directory / f"part-{number}")
        format = write(files[-1], sum(ROWS[:number]), rows)
    return files, format


def flat(batch: Batch) -> list[tuple[str, bytes, bytes]]:
    arrays = [
        (name, fed if isinstance(fed, Ragged) else Ragged(fed, np.zeros(1, np.int64)))
        for name, fed in batch.items()
    ]
    return [(name, fed.values.tobytes(), fed.offsets.tobytes()) for name, fed in arrays]


def read(files: list[DataFile], format: Format, first: Place = BEGINNING, **options) -> tuple:
    """All batches as bytes, and the place behind each."""
    batches, places = [], []
    with QueueReader(files, format.slots, BATCH, format=format, first=first, **options) as reader:
        for batch in reader:
            batches.append(flat(batch))
            places.append(reader.place)
    return batches, places


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that files are of many."""
    cut = sources.cut
    monkeypatch.setattr(sources, "cut", lambda file, path, size=0: cut(file, path, 48))


@pytest.mark.parametrize("write", [multislot, with_words, libsvm, csv, parquet, arrow])
def test_one_thread_goes_on_with_the_batches_that_were_to_come(
    tmp_path: Path, write: Callable[..., Format]
) -> None:
    files, format = written(tmp_path, write)
    batches, places = read(files, format)
    assert len(batches) == -(-sum(ROWS) // BATCH)

    for number, place in enumerate(places, 1):
        rest, places_of_rest = read(files, format, place)

        assert rest == batches[number:]
        assert [p.next_file for p in places_of_rest] == [p.next_file for p in places[number:]]


@pytest.mark.parametrize("write", [multislot, libsvm, csv])
def test_compressed_text_is_gone_on_with_too(tmp_path: Path, write: Callable[..., Format]) -> None:
    files, format = written(tmp_path, write)
    for file in files:
        assert isinstance(file, Path)
        file.write_bytes(gzip.compress(file.read_bytes()))
    batches, places = read(files, format)

    assert read(files, format, places[4])[0] == batches[5:]


def test_what_a_program_writes_is_gone_on_with_too(tmp_path: Path) -> None:
    files, format = written(tmp_path, csv)
    batches, places = read(files, format, source=Piped("sed s/3/4/"))

    assert read(files, format, places[4], source=Piped("sed s/3/4/"))[0] == batches[5:]


def test_parts_of_files_are_gone_on_with_too(tmp_path: Path) -> None:
    _, format = written(tmp_path, csv)
    text = (tmp_path / "part-4").read_bytes()
    middle, stop = text.index(b"\n", 100) + 1, text.index(b"\n", 180) + 1
    files: list[DataFile] = [FilePart(tmp_path / "part-4", middle, stop), tmp_path / "part-0"]
    batches, places = read(files, format)

    for number, place in enumerate(places, 1):
        assert read(files, format, place)[0] == batches[number:]


@pytest.mark.parametrize("write", [multislot, csv, parquet])
@pytest.mark.parametrize("threads", [2, 3])
def test_several_threads_leave_no_example_out_and_give_none_twice(
    tmp_path: Path, write: Callable[..., Format], threads: int
) -> None:
    files, format = written(tmp_path, write)
    left_after = 4
    with QueueReader(files, format.slots, BATCH, threads, 2, format=format) as reader:
        seen = Counter(
            x
            for _, batch in zip(range(left_after), reader, strict=False)
            for x in batch["x"].ravel().tolist()
        )
        place = reader.place

    for more_threads in (1, threads):
        with QueueReader(
            files, format.slots, BATCH, more_threads, format=format, first=place
        ) as reader:
            rest = Counter(x for batch in reader for x in batch["x"].ravel().tolist())
        assert seen + rest == Counter(range(sum(ROWS)))


def test_positions_count_the_lines_before_them(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("1 1\n" * 30)
    with QueueReader([file], (X,), BATCH) as reader:
        next(batches := iter(reader))
        next(batches)
        (position,) = reader.place.positions
    assert position == Position(str(file), 44, 11, 1)  # blocks of 11 lines
    file.write_text("1 1\n" * 20 + "1 oops\n")

    with (
        QueueReader([file], (X,), BATCH, first=Place((position,), 1)) as reader,
        pytest.raises(DataError, match="line 21"),
    ):
        list(reader)


def test_a_file_that_became_shorter_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("1 1\n" * 5)
    for position in (Position(str(tmp_path / "f"), 400), Position(str(tmp_path / "f"), 4, 1, 9)):
        with (
            QueueReader([tmp_path / "f"], (X,), BATCH, first=Place((position,), 1)) as reader,
            pytest.raises(DataError, match="reading was to go on behind"),
        ):
            list(reader)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (Place((), -1), "next_file of a place is 0 or more, not -1"),
        (Place((), 99), "next_file of a place is at most 3, not 99"),
        (Place((Position("f"),), 0), "go on in f and to read it once more"),
        (Place((Position("f"), Position("f")), 2), "go on in f and to read it once more"),
        (Place((Position("f", examples=-1),), 1), "examples of a position in f is 0 or more"),
    ],
)
def test_a_place_that_no_reader_of_the_files_was_at_is_refused(place: Place, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        QueueReader(["f", "g", "h"], (X,), BATCH, first=place)


def test_a_position_in_another_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="go on in g, which is not among the files"):
        QueueReader(["f"], (X,), BATCH, first=Place((Position("g"),), 1))
