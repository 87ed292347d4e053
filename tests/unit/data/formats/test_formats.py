"""Errors of formats with file, line and column, and their missing values."""

from __future__ import annotations

import datetime
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from psrt.cli import main
from psrt.config.load import load_job
from psrt.core.errors import ConfigError, DataError
from psrt.core.tensors import Ragged
from psrt.data.formats.formats import RowGroupFormat, TextFormat, format_named
from psrt.data.reading.queue import QueueReader
from psrt.data.slots import Batch, Slot
from psrt.data.sources.pipe import Piped
from psrt.trainer.inputs.batches import format_of
from psrt.trainer.inputs.job import load_job as build_job

EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "libsvm"
X, ID, IDS = Slot("x", "float", 1), Slot("id", "uint64", 1), Slot("ids", "uint64")
LIBSVM = (Slot("label", "float", 1), Slot("ids", "uint64"), Slot("values", "float"))


def read(path: Path, named: str, slots: tuple[Slot, ...], **options: Any) -> Batch:
    format = format_named(named, slots, options)
    with QueueReader([path], slots, 100, format=format) as batches:
        return next(iter(batches))


def read_csv(path: Path, text: str, *slots: Slot, **options: Any) -> Batch:
    path = path / "in.csv"
    path.write_text(text, newline="")
    return read(path, "csv", slots, **options)


def read_parquet(path: Path, table: dict[str, Any], *slots: Slot, **options: Any) -> Batch:
    pq.write_table(pa.table(table), path / "in.parquet")
    return read(path / "in.parquet", "parquet", slots, **options)


def ragged(batch: Batch, name: str) -> tuple[list[Any], list[int]]:
    fed = batch[name]
    assert isinstance(fed, Ragged)
    return fed.values.tolist(), fed.offsets.tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,id\n1,2\n\n1,2,3\n", r"in.csv, line 4: expected 2 cells between ',', found 3"),
        ("x,id\n1,2\nz,2\n", r"in.csv, line 3, column 'x': expected a finite number, found 'z'"),
        ("x,id\nnan,2\n", r"line 2, column 'x': expected a finite number, found 'nan'"),
        ("x,id\n1e39,2\n", r"column 'x': expected a number within the range of float32"),
        ("x,id\n1 2,2\n", r"column 'x': expected a finite number, found '1 2'"),
        ("x,id\n1,1.5\n", r"line 2, column 'id': expected an unsigned integer, found '1.5'"),
        ("x,id\n1,7\n2, -5\n", r"line 3.*'id': expected an id, a whole number from 0 on .*'-5'"),
        ("x,id\n1,18446744073709551616\n", r"column 'id': expected an id of at most 64 bits"),
        ("x,id\n1,\n", r"line 2, column 'id': expected a value, found ''"),
        ('x,id\n"1,2\n', r"line 2: expected \" at the end of a cell, found the line end"),
        ('x,id\n"1"2,2\n', r"line 2: expected ',' behind a quoted cell, found '2'"),
        ("x,y\n1,2\n", r"in.csv has no column 'id', which slot 'id' takes. .*are x, y"),
        ("x,id\n1\0,2\n", r"expected a finite number, found '1\\x00'"),
    ],
)
def test_a_bad_cell_is_named(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_csv(tmp_path, text, X, ID)


def test_a_bad_value_among_several_is_named(tmp_path):
    columns = {"ids": {"column": "ids", "separator": "|"}}

    with pytest.raises(DataError, match=r"line 4, column 'ids': expected an unsigned .*found 'z'"):
        read_csv(tmp_path, "ids\n1|2\n\n3|z|4\n", IDS, columns=columns)


def test_a_dense_slot_wants_its_number_of_values(tmp_path):
    columns = {"pair": {"column": "p", "separator": " "}}

    with pytest.raises(DataError, match=r"line 3, column 'p': expected 2 values .* found 3"):
        read_csv(tmp_path, "p,q\n1 2,\n1 2 3,\n", Slot("pair", "float", 2), columns=columns)


def test_missing_values_of_text(tmp_path):
    columns = {"x": {"missing": -1}}
    batch = read_csv(tmp_path, "x,ids\n,7\n2,\n", X, IDS, columns=columns)

    assert batch["x"].tolist() == [[-1], [2]]
    assert ragged(batch, "ids") == ([7], [0, 1, 1])


def test_missing_values_of_parquet(tmp_path):
    columns = {"x": {"missing": -1}}
    table = {"x": [None, 2.0], "ids": [7, None], "lists": [[1, 2], None]}
    lists = Slot("lists", "uint64")
    batch = read_parquet(tmp_path, table, X, IDS, lists, columns=columns)

    assert batch["x"].tolist() == [[-1], [2]]
    assert ragged(batch, "ids") == ([7], [0, 1, 1])
    assert ragged(batch, "lists") == ([1, 2], [0, 2, 2])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"x": [1.0, None], "id": [1, 2]}, r"in.parquet, row 2, column 'x': expected a value"),
        ({"x": [1.0, np.inf], "id": [1, 2]}, r"row 2, column 'x': .* float32, found inf"),
        ({"x": [1.0], "id": [1.5]}, r"column 'id': double cannot be read as id for slot 'id'"),
        ({"x": [datetime.date(2020, 1, 1)], "id": [1]}, r"'x': date32.* cannot be read as float"),
        ({"x": [[1.0], [1.0, 2.0]], "id": [1, 2]}, r"row 2, column 'x': expected a list of 1"),
        ({"x": [1.0]}, r"in.parquet has no column 'id', which slot 'id' takes"),
    ],
)
def test_a_bad_column_of_a_table_is_named(tmp_path, table, message):
    with pytest.raises(DataError, match=message):
        read_parquet(tmp_path, table, X, ID)


@pytest.mark.parametrize("named", ["parquet", "arrow"])
def test_a_file_cut_off_is_no_table(tmp_path, named):
    path = tmp_path / "in"
    pq.write_table(pa.table({"x": np.arange(1000.0)}), path)
    path.write_bytes(path.read_bytes()[:-100])

    with pytest.raises(DataError, match=r"in: not a whole (Parquet|Arrow IPC) file"):
        read(path, named, (X,))


def test_reading_can_begin_at_a_row_group(tmp_path):
    pq.write_table(pa.table({"x": np.arange(10.0)}), tmp_path / "in", row_group_size=4)
    format = format_named("parquet", (X,))
    assert isinstance(format, RowGroupFormat)

    batches = list(format.read(tmp_path / "in", 3, row_group=1))

    found = [(group, batch["x"].ravel().tolist()) for group, batch in batches]
    assert found == [(1, [4, 5, 6]), (1, [7]), (2, [8, 9])]


def test_a_csv_parser_can_begin_behind_a_line(tmp_path):
    (tmp_path / "in").write_text("y,x\n1,2\n3,4\n")
    format = format_named("csv", (X,))
    assert isinstance(format, TextFormat)
    parser = format.parser(10)

    parser.begin_file(str(tmp_path / "in"), line=2)
    list(parser.feed(np.frombuffer(b"y,x\n", np.uint8)))
    list(parser.feed(np.frombuffer(b"3,4\n", np.uint8)))

    last = parser.finish()
    assert last is not None
    assert last["x"].tolist() == [[4]]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("2 1:1", r"in.svm, line 2, label: expected 1 or \+1, −1 or 0, found '2'"),
        ("1 a:1", r"line 2, entry 1: expected index:value with an index"),
        ("1 1:1 7", r"line 2, entry 2: expected index:value, found '7'"),
        ("1 1:1 7:", r"line 2, entry 2: expected a finite number behind the colon"),
        ("1 qid:3 7:1", r"line 2, entry 1: expected index:value"),
    ],
)
def test_a_bad_row_of_libsvm_is_named(tmp_path, row, message):
    (tmp_path / "in.svm").write_text(f"1 1:1\n{row}\n")

    with pytest.raises(DataError, match=message):
        read(tmp_path / "in.svm", "libsvm", LIBSVM)


def test_labels_of_libsvm_may_be_numbers(tmp_path):
    (tmp_path / "in.svm").write_text("-2.5 1:1\n16777217.0000000000001\n")

    batch = read(tmp_path / "in.svm", "libsvm", LIBSVM, labels="number")

    assert batch["label"].ravel().tolist() == [-2.5, float(np.float32(16777217.0000000000001))]


@pytest.mark.parametrize(
    ("named", "slots", "options", "message"),
    [
        ("xml", (X,), {}, "unknown format 'xml'"),
        ("csv", (X,), {"delimeter": ";"}, "format csv has no option 'delimeter'"),
        ("csv", (X,), {"delimiter": "||"}, "delimiter is '||', expected one ASCII character"),
        ("csv", (X,), {"columns": {"y": 1}}, "data.columns names 'y', which is no slot"),
        ("csv", (X,), {"columns": {"x": {"kin": "id"}}}, "data.columns.x: unknown key 'kin'"),
        (
            "csv",
            (X,),
            {"columns": {"x": {"kind": "text"}}},
            "data.columns.x: kind is 'text', expected float",
        ),
        (
            "csv",
            (X,),
            {"columns": {"x": ["a", "b"]}},
            "data.columns.x: columns is '2 columns', expected 1",
        ),
        (
            "csv",
            (Slot("p", "float", 2),),
            {},
            "data.columns.p: expected 2 columns, or one with a separator",
        ),
        ("libsvm", (X,), {}, r"libsvm text cannot feed the slots \['x'\]"),
        ("criteo", (IDS,), {}, "the Criteo table cannot feed slot 'ids'"),
    ],
)
def test_a_mistake_in_a_format_is_told_with_the_file_that_makes_it(named, slots, options, message):
    with pytest.raises(ConfigError, match=f"^job.toml: {message}".replace("||", r"\|\|")):
        format_named(named, slots, options, "job.toml")


def test_a_pipe_command_does_not_fit_a_binary_format(tmp_path):
    with pytest.raises(ConfigError, match="a pipe command gives lines of text"):
        QueueReader(["f"], (X,), 1, source=Piped("tr a b"), format=format_named("parquet", (X,)))


def a_job(directory: Path, data: str) -> Path:
    """The libsvm example on 300 rows of its sample, its `[data]` completed by `data`."""
    shutil.copy(EXAMPLE / "logistic.py", directory)
    rows = "".join(f"{'+1' if i % 2 else '-1'} {i % 7 + 10 * (i % 2)}:1.5\n" for i in range(300))
    (directory / "train.svm").write_text(rows)
    job = '[job]\nname = "direct"\nprogram = "logistic.py"\n[data]\nbatch_size = 50\nepochs = 5\n'
    (directory / "job.toml").write_text(job + data)
    return directory / "job.toml"


def test_a_trainer_trains_on_libsvm_text_as_it_is(tmp_path):
    data = 'format = "libsvm"\ntrain = ["train.svm"]\ntest = ["train.svm"]\n'
    job = a_job(tmp_path, data)

    report = tmp_path / "report.json"
    code = main.run(["trainer", "--local", "--report", str(report), str(job)])

    assert code == 0
    assert '"auc": 1.0' in report.read_text()


def test_columns_and_options_of_a_job_reach_its_format(tmp_path):
    columns = '[data.columns]\nids = { column = 1, separator = "|" }\n'
    columns += 'values = { column = 2, separator = "|" }\n[data.options]\nheader = false\n'
    job = build_job(load_job(str(a_job(tmp_path, f'format = "csv"\n{columns}'))).config)

    format = format_of(job)

    assert [field.columns for field in format.fields] == [("label",), (1,), (2,)]
    assert not format.header


def test_a_mistake_in_the_columns_of_a_job_names_the_job_file(tmp_path):
    job = a_job(tmp_path, 'format = "csv"\n[data.columns]\nlable = 0\n')

    with pytest.raises(ConfigError, match=r"job\.toml: data\.columns names 'lable'"):
        format_of(build_job(load_job(str(job)).config))


def test_columns_that_are_no_table_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"job\.toml: data\.columns is 3, expected a table"):
        load_job(str(a_job(tmp_path, "columns = 3\n")))
