"""libsvm text to MultiSlot: rows, labels, splits, refusals."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from psrt.core.errors import ConfigError, DataError
from psrt.data.convert.libsvm import SLOTS, convert
from psrt.data.convert.sharded import Destination, ShardedWriter, Split
from psrt.data.reading.queue import QueueReader

ALL = Split(test_fraction=0)


def converted(
    tmp_path: Path, text: str, split: Split = ALL, files: int = 1, tests: str = ""
) -> ShardedWriter:
    (tmp_path / "in.svm").write_text(text)
    (tmp_path / "test.svm").write_text(tests)
    held_back = [tmp_path / "test.svm"] if tests else []
    destination = Destination(tmp_path / "out", files, replace=True)
    return convert([tmp_path / "in.svm"], destination, split, held_back)


def written(writer: ShardedWriter, part: str = "train") -> list[str]:
    return [line for path in writer.paths(part) for line in path.read_text().splitlines()]


def many_rows(count: int) -> str:
    return "".join(f"{i % 2} {i + 1}:{i}.5\n" for i in range(count))


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ("+1 3:1 11:0.25", "1 1 2 3 11 2 1 0.25"),
        ("-1 3:1", "1 0 1 3 1 1"),
        ("0 3:1", "1 0 1 3 1 1"),
        ("1.0 3:-2.5e-7", "1 1 1 3 1 -2.5e-7"),
        ("1", "1 1 0 0"),
        ("1  7:1\t9:2  ", "1 1 2 7 9 2 1 2"),
        ("1 7:1 # a remark 5:5", "1 1 1 7 1 1"),
        ("1 7:1\r", "1 1 1 7 1 1"),
        ("1 0:0.123456789 999999999999999999:1", "1 1 2 0 999999999999999999 2 0.123456789 1"),
    ],
)
def test_a_row_keeps_its_entries_digit_by_digit(tmp_path: Path, row: str, line: str) -> None:
    assert written(converted(tmp_path, row + "\n")) == [line]


def test_blank_lines_comments_and_a_missing_last_newline_are_accepted(tmp_path: Path) -> None:
    writer = converted(tmp_path, "\n# head\n1 2:3\n   \n0 4:5")

    assert written(writer) == ["1 1 1 2 1 3", "1 0 1 4 1 5"]
    assert (writer.rows["train"], writer.clicks["train"]) == (2, 1)


def test_the_reader_of_psrt_reads_what_was_written(tmp_path: Path) -> None:
    writer = converted(tmp_path, "1 3:0.5 7:2\n-1\n1 9:1e3\n")

    with QueueReader(writer.paths("train"), SLOTS, 10) as reader:
        [batch] = reader

    assert batch["label"].tolist() == [[1.0], [0.0], [1.0]]
    assert batch["ids"].values.tolist() == [3, 7, 9]
    assert batch["values"].values.tolist() == [0.5, 2.0, 1000.0]
    assert batch["ids"].offsets.tolist() == batch["values"].offsets.tolist() == [0, 2, 2, 3]


def test_gzip_is_recognised(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_bytes(gzip.compress(b"1 2:3\n"))

    writer = convert([source], Destination(tmp_path / "out", 1), ALL)

    assert written(writer) == ["1 1 1 2 1 3"]


def test_files_of_their_own_become_the_test_rows(tmp_path: Path) -> None:
    writer = converted(tmp_path, many_rows(50), Split(0.5), tests="1 5:6\n")

    assert len(written(writer)) == 50
    assert written(writer, "test") == ["1 1 1 5 1 6"]


def test_the_test_share_depends_on_rows_and_seed_only(tmp_path: Path) -> None:
    text = many_rows(20_000)
    backwards = "".join(reversed(text.splitlines(keepends=True)))

    first = written(converted(tmp_path, text, Split(0.2)), "test")
    again = written(converted(tmp_path, backwards, Split(0.2), files=3), "test")
    other = written(converted(tmp_path, text, Split(0.2, seed=1)), "test")

    assert set(first) == set(again) != set(other)
    assert 3800 < len(first) < 4200


def test_no_row_is_lost_over_many_kernel_calls(tmp_path: Path) -> None:
    writer = converted(tmp_path, many_rows(20_000), Split(0.3), files=3)

    lines = written(writer) + written(writer, "test")
    assert sorted(lines) == sorted(f"1 {i % 2} 1 {i + 1} 1 {i}.5" for i in range(20_000))


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        ("2 1:1", "label: expected 1 or +1, −1 or 0, found '2'"),
        ("cat 1:1", "label: expected 1 or +1, −1 or 0, found 'cat'"),
        ("nan 1:1", "label"),
        ("1 qid:3 1:1", "entry 1: expected index:value with an index of at most 18 digits"),
        ("1 1:1 -2:1", "entry 2: expected index:value with an index of at most 18 digits"),
        ("1 1234567890123456789:1", "entry 1: expected index:value with an index of at most"),
        ("1 1:1 2 3:1", "entry 2: expected index:value, found '2'"),
        ("1 1:1 2=1", "entry 2: expected index:value, found '2=1'"),
        ("1 1:", "entry 1: expected a finite number behind the colon, found nothing"),
        ("1 1: 5", "entry 1: expected a finite number behind the colon"),
        ("1 1:2:3", "entry 1: expected a finite number behind the colon, found '2:3'"),
        ("1 1:1 2:inf", "entry 2: expected a finite number behind the colon, found 'inf'"),
        ("1 1:1 2:1e99", "entry 2: expected a finite number behind the colon, found '1e99'"),
        ("1 1:1 \x01", "entry 2"),
    ],
)
def test_a_malformed_row_is_refused_by_file_and_line(
    tmp_path: Path, bad: str, expected: str
) -> None:
    with pytest.raises(DataError) as refused:
        converted(tmp_path, f"1 1:1\n\n# remark\n{bad}\n1 1:1\n")

    assert f"{tmp_path}/in.svm, line 4, " in refused.value.message
    assert expected in refused.value.message
    assert list((tmp_path / "out").iterdir()) == []


def test_lines_are_counted_over_many_kernel_calls(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 20001, label"):
        converted(tmp_path, many_rows(20_000) + "oops\n")


@pytest.mark.parametrize("size", [1, 7, 300])
def test_any_text_of_the_grammar_comes_through(tmp_path: Path, size: int) -> None:
    random = np.random.default_rng(size)
    rows = [
        [(int(i), f"{v:.{random.integers(1, 9)}g}") for i, v in zip(*pair, strict=True)]
        for pair in (
            (random.integers(0, 10**9, n), random.normal(size=n))
            for n in random.integers(0, 40, size)
        )
    ]
    text = "".join("1 " + " ".join(f"{i}:{v}" for i, v in row) + "\n" for row in rows)

    lines = written(converted(tmp_path, text))

    assert [line.split() for line in lines] == [
        ["1", "1", str(len(row)), *(str(i) for i, _ in row), str(len(row)), *(v for _, v in row)]
        for row in rows
    ]


def test_a_test_fraction_outside_the_range_is_refused() -> None:
    with pytest.raises(ConfigError, match="test_fraction"):
        Split(test_fraction=1.0)
