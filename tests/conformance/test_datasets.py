"""Contracts of every data set writer and every dataset.

Writers, `criteo` and `synth-ctr`, run through the command line, as users do. `QueueDataset` and
`InMemoryDataset` give the same records.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from click.testing import CliRunner

import psrt
from psrt.cli.data.commands import data
from psrt.core.errors import DataError
from psrt.core.tensors import Ragged
from psrt.data.convert.criteo import slots
from psrt.data.reading.queue import QueueReader
from psrt.data.slots import Slot
from psrt.data.sources.files import expand
from psrt.data.sources.sharding import cut_at_lines, modulo

ROWS = 400

Example: TypeAlias = tuple[list[float], ...]


@pytest.fixture(params=["criteo", "criteo-buckets", "synth-ctr"])
def command(request, tmp_path) -> list[str]:
    if request.param == "synth-ctr":
        return ["synth-ctr", "--rows", str(ROWS * 3 // 4), "--test-rows", str(ROWS // 4)]
    table = tmp_path / "in.tsv.gz"
    table.write_bytes(gzip.compress("".join(criteo_row(i) for i in range(ROWS)).encode()))
    buckets = ["--bucket-ints"] if request.param == "criteo-buckets" else []
    return ["criteo", str(table), "--test-fraction", "0.25", *buckets]


def criteo_row(i: int) -> str:
    integers = [str(i * k) if (i + k) % 4 else "" for k in range(13)]
    categories = [f"{i * k % 97:08x}" if (i + k) % 9 else "" for k in range(26)]
    return "\t".join([str(i % 2), *integers, *categories]) + "\n"


def run(command: list[str], *options: str) -> str:
    result = CliRunner().invoke(data, [*command, *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def contents(directory: Path, pattern: str) -> dict[str, bytes]:
    paths = expand([pattern], directory)
    return {path.name: path.read_bytes() for path in paths}


def examples(paths: list[Path], command: list[str]) -> int:
    layout = slots(bucket_integers="--bucket-ints" in command)
    with QueueReader(paths, layout, 32, threads=2) as reader:
        return sum(len(batch["click"]) for batch in reader)


def test_every_row_is_in_one_file(command, tmp_path):
    run(command, "--out", str(tmp_path / "out"), "--files", "3")

    assert examples(expand(["*.txt"], tmp_path / "out"), command) == ROWS


def test_every_trainer_gets_the_same_number_of_rows_but_one(command, tmp_path):
    run(command, "--out", str(tmp_path / "out"), "--files", "4")
    train = expand(["train-*"], tmp_path / "out")

    counts = [examples(share, command) for share in modulo(train, 4)]

    assert max(counts) - min(counts) <= 1


def test_gzip_files_hold_the_same_text(command, tmp_path):
    run(command, "--out", str(tmp_path / "plain"))
    run(command, "--out", str(tmp_path / "zipped"), "--gzip")

    plain = contents(tmp_path / "plain", "t*.txt")
    zipped = contents(tmp_path / "zipped", "t*.txt.gz")
    assert list(plain.values()) == [gzip.decompress(text) for text in zipped.values()]
    assert [f"{name}.gz" for name in plain] == list(zipped)


def test_a_second_run_writes_the_same_bytes(command, tmp_path):
    run(command, "--out", str(tmp_path / "out"))
    first = contents(tmp_path / "out", "*")

    run(command, "--out", str(tmp_path / "out"), "--replace")

    assert contents(tmp_path / "out", "*") == first


def test_old_files_are_not_mixed_with_new_ones(command, tmp_path):
    run(command, "--out", str(tmp_path / "out"), "--files", "3")

    with pytest.raises(DataError, match=r"already holds 6 data files \(test-00000\.txt"):
        run(command, "--out", str(tmp_path / "out"), "--files", "2")
    run(command, "--out", str(tmp_path / "out"), "--files", "2", "--replace")

    assert len(expand(["*.txt"], tmp_path / "out")) == 4


def test_the_command_tells_what_it_wrote_and_what_comes_next(command, tmp_path):
    output = run(command, "--out", str(tmp_path / "out"))

    assert "train-00000.txt … train-00001.txt" in output
    assert f'train = ["{tmp_path}/out/train-*.txt"]' in output
    assert "psrt launch" in output


def test_printed_globs_find_the_files(command, tmp_path):
    output = run(command, "--out", str(tmp_path / "out"), "--gzip")

    patterns = [line.split('"')[1] for line in output.splitlines() if "*" in line]
    assert len(expand(patterns)) == 4


def test_clicks_are_zero_or_one_and_dense_values_finite(command, tmp_path):
    run(command, "--out", str(tmp_path / "out"))
    layout = slots(bucket_integers="--bucket-ints" in command)

    with QueueReader(expand(["train-*"], tmp_path / "out"), layout, ROWS) as reader:
        [batch] = reader

    assert set(np.unique(batch["click"])) == {0, 1}
    assert np.isfinite(batch["dense_input"]).all()


# --- datasets ---

LAYOUT = [
    Slot("click", "float", 1),
    Slot("ids", "uint64"),
    Slot("x", "float"),
    Slot("c", "uint64", 2),
]
LINES = 300


@pytest.fixture(params=["queue", "memory", "memory, shuffled", "memory, pieces handed on"])
def dataset_of(request) -> Callable[..., psrt.QueueDataset | psrt.InMemoryDataset]:
    """Makes a dataset of the kind, ready for a pass."""

    def make(**settings: Any) -> psrt.QueueDataset | psrt.InMemoryDataset:
        if request.param == "queue":
            return psrt.QueueDataset(**settings)
        dataset = psrt.InMemoryDataset(**settings)
        dataset.load_into_memory(is_shuffle="shuffled" in request.param)
        if "pieces" in request.param:
            dataset.memory.put(dataset.memory.take())
        return dataset

    return make


@pytest.fixture
def multislot(tmp_path) -> tuple[list[Path], list[Example]]:
    """Files of uneven length, and what is in them."""
    draw = np.random.default_rng(0)
    rows: list[Example] = []
    for i in range(LINES):
        ids = draw.integers(-(1 << 63), (1 << 63) - 1, draw.integers(0, 5)).tolist()
        floats = draw.normal(size=draw.integers(0, 3)).astype("f4").tolist()
        rows.append(([i % 2], ids, floats, [i, i + 1]))
    paths = [tmp_path / f"part-{k}" for k in range(3)]
    for path, (start, stop) in zip(paths, [(0, 10), (10, 10), (10, LINES)], strict=True):
        path.write_text("".join(map(line_of, rows[start:stop])))
    return paths, rows


def line_of(row: Example) -> str:
    values = [value for values in row for value in (len(values), *values)]
    unsigned = [value % (1 << 64) if isinstance(value, int) else value for value in values]
    return " ".join(map(str, unsigned)) + "\n"


def rows_of(dataset: psrt.QueueDataset | psrt.InMemoryDataset) -> list[Example]:
    rows = []
    for batch in dataset.batches():
        fields = [lists_of(batch[slot.name]) for slot in LAYOUT]
        rows += zip(*fields, strict=True)
    return rows


def lists_of(fed: Any) -> list[list[float]]:
    if isinstance(fed, Ragged):
        return [part.tolist() for part in np.split(fed.values, fed.offsets[1:-1])]
    return fed.tolist()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("batch_size", [7, 1000])
def test_a_pass_gives_every_record_once(dataset_of, multislot, threads, batch_size):
    paths, rows = multislot

    dataset = dataset_of(use_var=LAYOUT, files=paths, threads=threads, batch_size=batch_size)

    assert sorted(rows_of(dataset)) == sorted(rows)
    assert sorted(rows_of(dataset)) == sorted(rows)


def test_batches_are_full_but_the_last(dataset_of, multislot):
    paths, _ = multislot

    dataset = dataset_of(use_var=LAYOUT, files=paths, batch_size=64)

    assert [len(batch["click"]) for batch in dataset.batches()] == [64] * 4 + [LINES - 256]


def test_data_vars_give_batches_their_shapes(dataset_of, multislot):
    paths, _ = multislot
    with psrt.program():
        vars = [
            psrt.layers.data("click", (1,)),
            psrt.layers.data("ids", dtype="int64", ragged=True),
            psrt.layers.data("x", ragged=True),
            psrt.layers.data("c", (2, 1), "int64"),
        ]

    batch = next(dataset_of(use_var=vars, files=paths, batch_size=8).batches())

    assert batch["c"].shape == (8, 2, 1)
    assert batch["ids"].batch_size == batch["x"].batch_size == 8


def test_files_go_through_a_program(dataset_of, multislot):
    paths, rows = multislot
    zipped = paths[0].with_suffix(".gz")
    zipped.write_bytes(gzip.compress(paths[0].read_bytes()))

    dataset = dataset_of(
        use_var=LAYOUT, files=[zipped, paths[2]], threads=2, pipe_command="grep -v '^1 0'"
    )

    assert sorted(rows_of(dataset)) == sorted(row for row in rows if row[0] == [1])


def test_parts_of_files_are_files(dataset_of, multislot):
    paths, rows = multislot
    shares = cut_at_lines([paths[2]], 2)

    found = [rows_of(dataset_of(use_var=LAYOUT, files=share)) for share in shares]

    assert all(found)
    assert sorted(found[0] + found[1]) == sorted(rows[10:])


def test_a_file_named_twice_is_read_once(dataset_of, multislot):
    paths, rows = multislot

    dataset = dataset_of(use_var=LAYOUT, files=[paths[0], paths[0].parent / "part-*"])

    assert sorted(rows_of(dataset)) == sorted(rows)


def test_other_formats_are_read_by_name(dataset_of, tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:0.5 7:2\n0 3:1\n")
    slots = [Slot("label", "float", 1), Slot("ids", "uint64"), Slot("values", "float")]

    dataset = dataset_of(use_var=slots, files=[tmp_path / "rows.svm"], format="libsvm")

    found = [lists_of(batch["ids"]) for batch in dataset.batches()]
    assert sorted(found[0]) == [[1, 7], [3]]


def test_a_malformed_line_is_named(dataset_of, multislot):
    paths, _ = multislot
    paths[1].write_text("1 0 1 x 0 2 0 1\n")

    with pytest.raises(
        DataError, match="part-1, line 1, column 7, slot 'ids': expected an unsigned"
    ):
        rows_of(dataset_of(use_var=LAYOUT, files=paths, threads=2))
