"""The public Criteo table to MultiSlot: values, gaps, the test split, refusals."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from psrt.core.errors import DataError
from psrt.data.convert.criteo import convert, slots
from psrt.data.convert.sharded import Destination, Split
from psrt.data.reading.queue import QueueReader

CATEGORIES = [f"{i:08x}" for i in range(26)]


def row(label="0", integers=("1",) * 13, categories=tuple(CATEGORIES)) -> str:
    return "\t".join([label, *integers, *categories]) + "\n"


def many_rows(count: int) -> str:
    return "".join(row(str(i % 2), (str(i),) * 13) for i in range(count))


ALL = Split(test_fraction=0)


def converted(
    tmp_path: Path, text: str, split: Split = ALL, files: int = 1, bucket_integers: bool = False
):
    source = tmp_path / "in.tsv"
    source.write_text(text)
    destination = Destination(tmp_path / "out", files, replace=True)
    return convert([source], destination, split, bucket_integers)


def read(writer, part: str = "train", bucket_integers: bool = False):
    with QueueReader(writer.paths(part), slots(bucket_integers), 1000) as reader:
        [batch] = reader
    return batch


def labels_and_first_integers(writer, part: str) -> list[str]:
    return [line for path in writer.paths(part) for line in path.read_text().splitlines()]


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(DataError) as refused:
        converted(tmp_path, text)
    return refused.value.message


def test_integers_are_on_a_signed_logarithmic_scale_and_gaps_are_zero(tmp_path):
    integers = ("", "0", "-3", "1", "23255") + ("2",) * 8

    batch = read(converted(tmp_path, row("1", integers)))

    wanted = [0, 0, -math.log(4), math.log(2), math.log(23256)] + [math.log(3)] * 8
    np.testing.assert_allclose(batch["dense_input"][0], wanted, atol=1e-6)
    assert batch["click"].tolist() == [[1.0]]


def test_equal_texts_have_one_id_in_a_slot_and_different_ids_in_two(tmp_path):
    same = row(categories=("68fd1e64",) * 26)

    batch = read(converted(tmp_path, same + row() + same))

    assert batch["C1"][0] == batch["C1"][2] != batch["C1"][1]
    assert len({int(batch[f"C{i}"][0, 0]) for i in range(1, 27)}) == 26


def test_a_missing_category_has_an_id_of_its_own_in_each_slot(tmp_path):
    batch = read(converted(tmp_path, row(categories=("",) * 26) + row()))

    missing = {int(batch[f"C{i}"][0, 0]) for i in range(1, 27)}
    assert len(missing) == 26
    assert missing.isdisjoint(int(batch[f"C{i}"][1, 0]) for i in range(1, 27))


def test_ids_do_not_change_between_versions(tmp_path):
    batch = read(converted(tmp_path, row(categories=("68fd1e64", *CATEGORIES[1:]))))

    assert int(batch["C1"][0, 0]) == 5646656709019152892


def test_ids_are_63_bits(tmp_path):
    batch = read(converted(tmp_path, row()))

    assert all(batch[f"C{i}"][0, 0] >= 0 for i in range(1, 27))


def test_integers_become_ids_too_when_asked(tmp_path):
    text = row(integers=("1000",) * 13) + row(integers=("1001",) * 13) + row(integers=("",) * 13)

    batch = read(converted(tmp_path, text, bucket_integers=True), bucket_integers=True)

    assert batch["I1"][0] == batch["I1"][1] != batch["I1"][2]
    assert batch["I1"][0] != batch["I2"][0]


@pytest.mark.parametrize("files", [1, 3])
def test_rows_are_dealt_evenly_over_the_files(tmp_path, files):
    writer = converted(tmp_path, many_rows(10), files=files)

    lines = [len(path.read_text().splitlines()) for path in writer.paths("train")]
    assert sum(lines) == 10
    assert max(lines) - min(lines) <= 1


def test_the_test_split_depends_on_rows_and_seed_only(tmp_path):
    text = many_rows(1000)
    backwards = "".join(reversed(text.splitlines(keepends=True)))

    first = labels_and_first_integers(converted(tmp_path, text, Split(0.2)), "test")
    again = labels_and_first_integers(converted(tmp_path, backwards, Split(0.2), 3), "test")
    other = labels_and_first_integers(converted(tmp_path, text, Split(0.2, seed=1)), "test")

    assert set(first) == set(again) != set(other)
    assert 150 < len(first) < 250


def test_no_row_is_in_both_parts(tmp_path):
    writer = converted(tmp_path, many_rows(500), Split(0.3))

    train = labels_and_first_integers(writer, "train")
    test = labels_and_first_integers(writer, "test")
    assert len(train) + len(test) == len({*train, *test}) == 500


def test_crlf_and_a_missing_last_newline_are_accepted(tmp_path):
    plain = read(converted(tmp_path, row() + row("1")))
    source = tmp_path / "crlf.tsv"
    source.write_bytes((row() + row("1")).replace("\n", "\r\n").rstrip().encode())

    writer = convert([source], Destination(tmp_path / "crlf"), ALL)

    assert writer.rows["train"] == 2
    assert plain["C26"][0] == plain["C26"][1]


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        ("0\t1\n", "expected 40 fields between tabs (label, I1 … I13, C1 … C26), found 2"),
        (row()[2:], "expected 40 fields between tabs (label, I1 … I13, C1 … C26), found 39"),
        (row().rstrip("\n") + "\t\n", "found 41"),
        ("\n", "found 1"),
        (row("2"), "field label: expected 0 or 1, found '2'"),
        (row(""), "field label: expected 0 or 1, found ''"),
        (row(integers=("1", "x5") + ("1",) * 11), "field I2: expected an integer or nothing"),
        (row(integers=("1.5",) * 13), "field I1: expected an integer or nothing, found '1.5'"),
        (row(integers=("-",) * 13), "field I1: expected an integer or nothing, found '-'"),
        (row(integers=("9" * 19,) * 13), "field I1: expected an integer or nothing"),
    ],
)
def test_a_malformed_row_is_refused_by_file_and_line(tmp_path, bad, expected):
    message = refusal(tmp_path, row() + row() + bad + row())

    assert f"{tmp_path}/in.tsv, line 3" in message
    assert expected in message


def test_lines_are_counted_over_many_kernel_calls(tmp_path):
    assert "line 20001:" in refusal(tmp_path, many_rows(20_000) + "oops\n")


def test_a_refused_table_leaves_no_files(tmp_path):
    refusal(tmp_path, row() + "oops\n")

    assert list((tmp_path / "out").iterdir()) == []
