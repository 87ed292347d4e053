"""Columns between blanks, numbers that texts stand for, words of `name:value`; what they refuse."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from psrt.core.errors import ConfigError, DataError
from psrt.core.tensors import Ragged
from psrt.data.convert.criteo import slots as criteo_slots
from psrt.data.formats.formats import format_named
from psrt.data.inspect.checking import check
from psrt.data.reading.queue import QueueReader
from psrt.data.slots import Batch, Slot

X, ID, IDS = Slot("x", "float", 1), Slot("id", "uint64", 1), Slot("ids", "uint64")
RICH = {"x": {"column": 0, "values": {"<=50K": 0, ">50K": 1}}}
HEADLESS = {"header": False}


def read(path: Path, text: str, named: str, *slots: Slot, **options: Any) -> Batch:
    [batch] = batches_of(path, text, named, *slots, **options)
    return batch


def batches_of(
    path: Path, text: str, named: str, *slots: Slot, batch_size: int = 100, **options: Any
) -> list[Batch]:
    (path / "in").write_text(text, newline="")
    format = format_named(named, slots, options)
    with QueueReader([path / "in"], slots, batch_size, format=format) as batches:
        return list(batches)


def values(batch: Batch, name: str) -> list[Any]:
    fed = batch[name]
    if isinstance(fed, Ragged):
        return [fed.values[a:b].tolist() for a, b in pairwise(fed.offsets.tolist())]
    return fed.tolist()


# --- csv ---


def test_columns_between_blanks(tmp_path):
    text = " \t1.5  7\n\n  2.5\t\t8 \r\n3.5 9"

    batch = read(
        tmp_path, text, "csv", X, ID, columns={"x": 0, "id": 1}, delimiter="blanks", **HEADLESS
    )

    assert values(batch, "x") == [[1.5], [2.5], [3.5]]
    assert values(batch, "id") == [[7], [8], [9]]


def test_a_line_with_other_columns_between_blanks_is_named(tmp_path):
    with pytest.raises(DataError, match=r"in, line 2: expected 2 cells .* found 3"):
        read(tmp_path, "x  id\n1  2   3\n", "csv", X, ID, delimiter="blanks")


def test_blank_lines_may_come_first_without_a_header(tmp_path):
    batch = read(tmp_path, "\r\n\n1,2\n", "csv", X, ID, columns={"x": 0, "id": 1}, **HEADLESS)

    assert values(batch, "id") == [[2]]


def test_a_header_cannot_be_blank(tmp_path):
    with pytest.raises(DataError, match="line 1: expected the names of the columns, found nothing"):
        read(tmp_path, "\nx,id\n1,2\n", "csv", X, ID)


@pytest.mark.parametrize("header", ["x,i\rd", '"x', 'x,"a"b', "x," + "y" * 200_000, "x,\0"])
def test_an_odd_header_is_an_error_of_the_file(tmp_path, header):
    with pytest.raises(DataError, match=r"in(, line 1| has no column)"):
        read(tmp_path, f"{header}\n1,2\n", "csv", X, ID)


def test_names_are_for_files_without_a_header(tmp_path):
    batch = read(tmp_path, "1,2\n3,4\n", "csv", X, ID, names=["id", "x"])

    assert values(batch, "x") == [[2], [4]]


def test_a_name_that_stands_twice_in_a_header_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"in has more than one column 'x', which slot 'x' takes"):
        read(tmp_path, "x,x\n1,2\n", "csv", X)
    assert values(read(tmp_path, "x,x\n1,2\n", "csv", X, columns={"x": 1}), "x") == [[2]]


@pytest.mark.parametrize(
    ("named", "options", "message"),
    [
        ("csv", {"names": ["x"], "header": True}, "names and header = true both name the columns"),
        ("csv", {"header": "false"}, "header is 'false', expected true or false"),
        ("csv", {"names": "abc"}, "names is 'abc', expected a list of texts"),
        ("csv", {"names": [1, 2]}, "names is .* expected a list of texts"),
        ("csv", {"names": ["y", "y"]}, "expected a list of texts that differ"),
        ("csv", {"quote": ","}, "delimiter and quote are both ','"),
        ("csv", {"delimiter": '"'}, "delimiter and quote are both '\"'"),
        ("csv", {"quote": None}, "quote is None, expected one ASCII character"),
        ("criteo", {"label": "no"}, "label is 'no', expected true or false"),
    ],
)
def test_options_of_tables_are_checked(named, options, message):
    with pytest.raises(ConfigError, match=message):
        format_named(named, (X,), options)


def test_the_first_bad_line_is_named_whatever_column_it_is_in(tmp_path):
    lines = [f"{n},{n}" for n in range(10)]
    lines[6], lines[4] = "z,6", "4,z"

    with pytest.raises(DataError, match=r"in, line 6, column 'id': .* found 'z'"):
        read(tmp_path, "\n".join(["x,id", *lines]), "csv", X, ID)


def test_batches_before_a_bad_line_are_handed_out(tmp_path):
    (tmp_path / "in").write_text("x,id\n" + "1,2\n" * 7 + "z,2\n")
    found = []

    with (
        pytest.raises(DataError, match="line 9"),
        QueueReader([tmp_path / "in"], (X, ID), 3, format=format_named("csv", (X, ID))) as batches,
    ):
        found.extend(len(batch["x"]) for batch in batches)

    assert found == [3, 3]


def test_texts_stand_for_numbers(tmp_path):
    batch = read(tmp_path, " <=50K,1\n>50K ,2\n", "csv", X, columns=RICH, **HEADLESS)

    assert values(batch, "x") == [[0], [1]]
    with pytest.raises(
        DataError, match=r"line 2, column 0: expected one of '<=50K', '>50K', found '50K'"
    ):
        read(tmp_path, ">50K\n50K\n", "csv", X, columns=RICH, **HEADLESS)
    with pytest.raises(DataError, match=r"line 2, .* found ''"):
        read(tmp_path, ">50K,1\n,2\n", "csv", X, columns=RICH, **HEADLESS)


def test_texts_of_parquet_stand_for_numbers_and_may_be_missing(tmp_path):
    pq.write_table(pa.table({"x": ["b", None, "a", ""]}), tmp_path / "in.parquet")
    columns = {"x": {"values": {"a": -1, "b": 2.5}, "missing": 9}}
    format = format_named("parquet", (X,), {"columns": columns})

    with QueueReader([tmp_path / "in.parquet"], (X,), 9, format=format) as batches:
        assert values(next(iter(batches)), "x") == [[2.5], [9], [-1], [9]]


@pytest.mark.parametrize(
    ("slots", "columns", "message"),
    [
        ((ID,), {"id": {"values": {"a": 1}}}, "data.columns.id: values is"),
        ((X,), {"x": {"values": {}}}, "texts and their numbers"),
        ((X,), {"x": {"values": {"a": "1"}}}, "texts and their numbers"),
        ((X,), {"x": {"values": {"": 1e39}}}, "each within float32"),
        ((X,), {"x": {"values": {1: 2}}}, "texts and their numbers"),
        ((X,), {"x": {"column": "z", "missing": "a"}}, "data.columns.x: missing is 'a'"),
        ((X,), {"x": {"missing": 1e39}}, "missing is .* within the range of float32"),
        ((X,), {"x": {"missing": float("nan")}}, "missing is nan, expected a number"),
        ((X,), {"x": {"missing": True}}, "missing is True, expected a number"),
        ((ID,), {"id": {"missing": 1.5}}, "missing is 1.5, expected an id, an integer"),
        ((ID,), {"id": {"missing": 2**64}}, "expected an id, an integer of 64 bits"),
        ((ID,), {"id": {"kind": "text", "salt": "x"}}, "salt is 'x', expected an integer"),
        ((ID,), {"id": {"kind": "text", "salt": 2**70}}, "salt is .* expected an integer"),
        (
            (IDS, Slot("more", "uint64")),
            {"ids": {"column": 0, "separator": "|"}, "more": {"column": 0, "separator": ";"}},
            r"data.columns.more: column 0 has two separators, '\|' and ';'",
        ),
    ],
)
def test_columns_that_cannot_be_read_are_refused(slots, columns, message):
    with pytest.raises(ConfigError, match=message):
        format_named("csv", slots, {"columns": columns})


@pytest.mark.parametrize("missing", [-1, 2**64 - 1])
@pytest.mark.parametrize("named", ["csv", "pairs"])
def test_an_id_of_64_bits_may_stand_for_a_missing_one(tmp_path, named, missing):
    text = "id,x\n,1\n" if named == "csv" else "x:1\n"

    batch = read(tmp_path, text, named, ID, columns={"id": {"column": "id", "missing": missing}})

    assert values(batch, "id") == [[-1]]


@pytest.mark.parametrize("label", ["2", "0.5", ""])
def test_a_label_of_criteo_is_0_or_1(tmp_path, label):
    with pytest.raises(DataError, match=f"column 'label': expected one of '0', '1', .* '{label}'"):
        read(tmp_path, label + "\t1" * 39 + "\n", "criteo", X)


def test_criteo_rows_without_labels(tmp_path):
    row = "\t".join([*map(str, range(13)), *(f"{i:08x}" for i in range(26))])
    slots = criteo_slots()

    labelled = read(tmp_path, f"1\t{row}\n", "criteo", *slots)
    bare = read(tmp_path, f"{row}\n", "criteo", *slots[1:], label=False)

    assert set(labelled) - set(bare) == {"click"}
    for name, fed in bare.items():
        np.testing.assert_array_equal(fed, labelled[name])


# --- pairs ---


def test_a_dense_slot_of_pairs_may_be_missing(tmp_path):
    slots = (Slot("pair", "float", 2), IDS)
    columns = {"pair": {"column": "pair", "missing": -1}, "ids": "7"}

    batch = read(tmp_path, "7:5 pair:1 pair:2 7:6\n9:1\n", "pairs", *slots, columns=columns)

    assert values(batch, "pair") == [[1, 2], [-1, -1]]
    assert values(batch, "ids") == [[5, 6], []]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x:1 id:2 id:3", r"line 2, name 'id': expected a value, found 2"),
        ("x:1", r"line 2, name 'id': expected a value, found none"),
        ("x:a id:2", r"line 2, name 'x': expected a finite number, found 'a'"),
        ("x: id:2", r"line 2, name 'x': expected a value, found ''"),
        ("x:1 id:2 seven", r"line 2: expected name:value, found 'seven'"),
        ("x:1 :5 id:2", r"line 2: expected name:value, found ':5'"),
        ("x:1 id:1\0", r"line 2, name 'id': expected an unsigned integer"),
    ],
)
def test_a_bad_line_of_pairs_is_named(tmp_path, line, message):
    with pytest.raises(DataError, match=message):
        read(tmp_path, f"x:1 id:2\n{line}\nx:z\n", "pairs", X, ID)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": "value"}, "order is 'value', expected name:value or value:name"),
        ({"delimiter": "::"}, "delimiter is '::', expected one ASCII character"),
        ({"columns": {"x": ["a"]}}, None),
        ({"columns": {"ids": {"column": "a", "separator": "|"}}}, "no separator"),
        ({"columns": {"x": "a", "ids": "a"}}, "'a' is slot x's"),
        ({"columns": {"x": -1}}, "numbered from 0, not -1"),
    ],
)
def test_options_of_pairs_are_checked(options, message):
    if message is None:
        format_named("pairs", (X, IDS), options)
        return
    with pytest.raises(ConfigError, match=message):
        format_named("pairs", (X, IDS), options)


# --- all errors of a file ---


CHECKED_CSV = "x,id\n1,2\nz,2\n\n1,2,3\n1,2\n,\n"


def test_all_bad_lines_of_a_table_are_found(tmp_path):
    (tmp_path / "in").write_text(CHECKED_CSV)
    pq.write_table(pa.table({"x": [1.0, None, 3.0, None], "id": [1, 2, 3, 4]}), tmp_path / "rows")
    csv, parquet = format_named("csv", (X, ID)), format_named("parquet", (X, ID))
    headless = format_named("csv", (X, ID), {"columns": {"x": 0, "id": 1}, "header": False})

    found, rows = check([tmp_path / "in"], csv), check([tmp_path / "rows"], parquet)
    (tmp_path / "in").write_text(CHECKED_CSV.partition("\n")[2])
    bare = check([tmp_path / "in"], headless)

    assert (found.examples, found.errors, rows.examples, rows.errors) == (2, 3, 2, 2)
    for line, said in zip((3, 5, 7), found.shown, strict=True):
        assert said.startswith(f"{tmp_path}/in, line {line}")
    for row, said in zip((2, 4), rows.shown, strict=True):
        assert said.startswith(f"{tmp_path}/rows, row {row}, column 'x'")
    assert (bare.examples, bare.errors) == (2, 3)
    assert bare.shown[0].startswith(f"{tmp_path}/in, line 2")


def test_a_file_without_a_column_is_one_error(tmp_path):
    (tmp_path / "in").write_text("x,other\n1,2\n1,2\n")

    found = check([tmp_path / "in"], format_named("csv", (X, ID)))

    assert (found.examples, found.errors) == (0, 1)
    assert "has no column 'id'" in found.shown[0]
