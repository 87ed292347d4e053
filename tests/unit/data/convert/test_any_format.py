"""`psrt data convert`: any format to MultiSlot files that give the same batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from psrt.cli import main
from psrt.core.errors import DataError
from psrt.core.tensors import Ragged
from psrt.data.convert.any_format import convert, lines_of_batch
from psrt.data.convert.sharded import Destination, ShardedWriter, Split
from psrt.data.formats.formats import format_named
from psrt.data.formats.multislot import BatchParser
from psrt.data.slots import Batch, Slot

SLOTS = (Slot("y", "float", 1), Slot("x", "float", 2), Slot("ids", "uint64"), Slot("w", "float"))
ALL = Split(test_fraction=0)


def read_back(batch: Batch) -> Batch:
    lines, _ = lines_of_batch(batch)
    parser = BatchParser(SLOTS, len(lines.lines) + 1)
    assert list(parser.feed(np.frombuffer(b"".join(lines.lines), np.uint8))) == []
    read = parser.finish()
    assert read is not None
    return read


def floats(patterns: np.ndarray) -> np.ndarray:
    values = patterns.astype(np.uint32).view(np.float32)
    return values[np.isfinite(values)]


def test_each_finite_float32_is_read_back_with_its_bits() -> None:
    random = np.random.default_rng(3)
    values = floats(random.integers(0, 1 << 32, 200_000))
    values = np.append(values, floats(np.arange(1, 200)))  # denormal
    values = np.append(values, np.float32([0, 0.1, -1, 1e9, 1e-7, 999999.94, 3.4028235e38]))
    values = np.append(values, random.normal(size=50_000).astype(np.float32))
    rows = len(values)
    lines, _ = lines_of_batch({"y": values.reshape(rows, 1)})

    parser = BatchParser(SLOTS[:1], rows + 1)
    assert list(parser.feed(np.frombuffer(b"".join(lines.lines), np.uint8))) == []
    read = parser.finish()

    assert read is not None
    np.testing.assert_array_equal(read["y"].reshape(-1).view(np.uint32), values.view(np.uint32))


def test_a_float_has_the_digits_it_needs() -> None:
    values = np.float32([0, -1.5, 0.1, 1.0986123, 12345, 1e-5, 1e-7, -2.5e-30, 3e38, 1e9])
    lines, _ = lines_of_batch({"y": values.reshape(1, -1)})

    assert bytes(lines.lines[0]).split()[1:] == [
        *(b"0", b"-1.5", b"0.1", b"1.0986123", b"12345", b"0.00001", b"1e-7"),
        *(b"-25e-31", b"3e38", b"1e9"),
    ]


def test_dense_and_ragged_slots_become_one_line_each_example() -> None:
    batch: Batch = {
        "y": np.float32([[1], [0]]),
        "x": np.float32([[0.5, -2], [1e-7, 3]]),
        "ids": Ragged.of([[-1, 7], []]),
        "w": Ragged(np.float32([0.25]), np.array([0, 0, 1])),
    }

    lines, draws = lines_of_batch(batch)

    assert [bytes(line) for line in lines.lines] == [
        b"1 1 2 0.5 -2 2 18446744073709551615 7 0\n",
        b"1 0 2 1e-7 3 0 1 0.25\n",
    ]
    assert all(0 <= draw < 1 for draw in draws)
    read = read_back(batch)
    for name, fed in batch.items():
        if isinstance(fed, Ragged):
            np.testing.assert_array_equal(read[name].values, fed.values)
            np.testing.assert_array_equal(read[name].offsets, fed.offsets)
        else:
            np.testing.assert_array_equal(read[name], fed)


def converted(tmp_path: Path, text: str, split: Split = ALL, tests: str = "") -> ShardedWriter:
    (tmp_path / "in.csv").write_text("y,x\n" + text)
    (tmp_path / "test.csv").write_text("y,x\n" + tests)
    format = format_named("csv", [Slot("y", "float", 1), Slot("x", "uint64", 1)])
    held_back = [tmp_path / "test.csv"] if tests else []
    destination = Destination(tmp_path / "out", 2, replace=True)
    return convert([tmp_path / "in.csv"], format, destination, split, held_back)


def written(writer: ShardedWriter, part: str) -> list[str]:
    return [line for path in writer.paths(part) for line in path.read_text().splitlines()]


def test_the_test_share_depends_on_rows_and_seed_only(tmp_path: Path) -> None:
    rows = [f"{i % 2},{i}\n" for i in range(5000)]

    first = written(converted(tmp_path, "".join(rows), Split(0.2)), "test")
    again = written(converted(tmp_path, "".join(rows[::-1]), Split(0.2)), "test")
    other = written(converted(tmp_path, "".join(rows), Split(0.2, seed=1)), "test")

    assert set(first) == set(again) != set(other)
    assert 900 < len(first) < 1100


def test_files_of_their_own_become_the_test_rows(tmp_path: Path) -> None:
    writer = converted(tmp_path, "1,2\n0,3\n", Split(0.5), tests="1,9\n")

    assert sorted(written(writer, "train")) == ["1 0 1 3", "1 1 1 2"]
    assert written(writer, "test") == ["1 1 1 9"]


def test_a_malformed_row_is_refused_by_line_and_leaves_no_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"in\.csv, line 3, column 'y'"):
        converted(tmp_path, "1,2\nx,3\n")

    assert list((tmp_path / "out").iterdir()) == []


def test_the_command_takes_a_format_with_its_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in.txt").write_text("1|7\n0|8\n")
    out = tmp_path / "out"
    options = ("--option", 'delimiter = "|"', "--option", 'names = ["y", "x"]')

    given = ("--slots", "y:float:1,x:uint64:1", "--format", "csv", "--test-fraction", "0")

    code = main.run(
        ["data", "convert", str(tmp_path / "in.txt"), *given, *options, "--out", str(out)]
    )

    assert code == 0
    assert "slots: y (1 float), x (1 id)" in capsys.readouterr().out
    assert (out / "train-00001.txt").read_text() == "1 0 1 8\n"


def test_libsvm_and_criteo_need_no_slots(tmp_path: Path) -> None:
    (tmp_path / "in.svm").write_text("+1 3:0.5\n")
    row = "\t".join(["1", *["2"] * 13, *["a"] * 26])
    (tmp_path / "in.tsv").write_text(row + "\n")
    for name, file in (("libsvm", "in.svm"), ("criteo", "in.tsv")):
        command = ["data", "convert", str(tmp_path / file), "--format", name]

        assert main.run([*command, "--out", str(tmp_path / name), "--test-fraction", "0"]) == 0

    assert (tmp_path / "libsvm" / "train-00000.txt").read_text() == "1 1 1 3 1 0.5\n"
    assert (tmp_path / "criteo" / "train-00000.txt").read_text().startswith("1 1 13 1.098612")


def test_an_option_that_is_no_toml_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in.csv").write_text("y\n1\n")
    command = ["data", "check", str(tmp_path / "in.csv"), "--slots", "y:float:1"]

    assert main.run([*command, "--format", "csv", "--option", "delimiter=;"]) != 0
    assert "--option delimiter=;" in capsys.readouterr().err
