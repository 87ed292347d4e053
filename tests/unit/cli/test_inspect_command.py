"""`psrt inspect` and the tables of `psrt export`: models, cuts and running pservers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.cli import main
from psrt.core.errors import ErrorCode
from tests.support.processes import psrt as process
from tests.support.pserver import daemon
from tests.support.small_job import TABLE, lines, write_files

Capture = pytest.CaptureFixture[str]
IDS = np.array([5, -3, 2**62], np.int64)
ROWS = np.array([[3, 4], [0, 0], [np.nan, 1]], np.float32)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model of one table with three rows, and a dense layer."""
    with psrt.program() as program:
        ids = layers.data("ids", (1,), "int64")
        rows = layers.slot_embeddings([ids], (10, 2), param="emb")
        out = layers.fc(rows, 1, param="w", bias="b")
    scope = psrt.Scope()
    for name, values in {"w": [[3.0], [-4.0]], "b": [0.0]}.items():
        scope[name] = np.array(values, np.float32)
    pages = {"emb": lambda: iter([(IDS[:2], ROWS[:2]), (IDS[2:], ROWS[2:])])}
    psrt.save_inference_model(tmp_path / "model", ["ids"], [out], program, scope, pages)
    return tmp_path / "model"


def run(*words: object) -> int:
    return main.run(list(map(str, words)))


def test_a_model_is_shown_with_norms_and_the_largest_rows(model: Path, capsys: Capture) -> None:
    assert run("inspect", model) == 0

    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["emb", "3", "2", "2.5", "5", "1", "1"] in shown
    assert ["w", "2", "×", "1", "5", "-4", "3", "0"] in shown
    assert shown[-3:] == [
        [str(2**62), "inf", "nan", "1"],
        ["5", "5", "3", "4"],
        ["-3", "0", "0", "0"],
    ]


def test_rows_of_ids_and_of_texts_are_printed(model: Path, capsys: Capture) -> None:
    assert run("inspect", model, "--id", 5, "--text", "u894") == 0

    text = psrt.hash_ids(["u894"])[0]
    assert capsys.readouterr().out.splitlines() == [
        "emb 5: 3 4",
        f"emb {text}: never trained; it has the initial values of its id",
    ]


def test_json_has_the_same_facts(model: Path, capsys: Capture) -> None:
    assert run("inspect", model, "--json", "--top", 1) == 0

    found = json.loads(capsys.readouterr().out)
    (table,) = found["tables"]
    assert (table["rows"], table["largest_norm"], sum(table["bins"])) == (3, 5.0, 1)
    assert {each["name"] for each in found["dense"]} == {"w", "b"}


def test_a_table_that_is_not_there_is_named(model: Path, capsys: Capture) -> None:
    assert run("inspect", model, "--table", "emv") == 2

    assert "Did you mean emb?" in capsys.readouterr().err


def test_a_histogram_is_drawn(model: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")

    assert run("inspect", model, "--histogram", tmp_path / "norms.png") == 0
    assert (tmp_path / "norms.png").read_bytes().startswith(b"\x89PNG")


def test_running_pservers_show_their_rows(tmp_path: Path, capsys: Capture) -> None:
    job = write_files(tmp_path, [lines(320, seed=1)])
    with daemon(tmp_path, "--stay") as pserver:
        given = "--endpoints", pserver.endpoint, "--save", str(tmp_path / "model")
        with process(tmp_path / "trainer.log", "trainer", *given, str(job)) as trainer:
            assert trainer.exit_code() == 0, trainer.output
        capsys.readouterr()
        assert run("inspect", pserver.endpoint, "--json") == 0
        live = json.loads(capsys.readouterr().out)

    assert run("inspect", tmp_path / "model", "--json") == 0
    saved = json.loads(capsys.readouterr().out)
    assert live["source"] == f"job small on {pserver.endpoint}"
    assert live["tables"] == saved["tables"]
    assert live["tables"][0]["name"] == TABLE
    assert live["dense"][0]["norm"] is None


def test_no_pserver_is_an_error(capsys: Capture) -> None:
    assert run("inspect", "127.0.0.1:1", "--timeout-s", 1) == ErrorCode.UNAVAILABLE

    assert "No pserver answers." in capsys.readouterr().err


# --- export of rows -------------------------------------------------------------------------------


def test_rows_are_exported_in_three_formats(model: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    for name in ("rows.parquet", "rows.npz", "rows.txt"):
        assert run("export", model, tmp_path / name) == 0

    order = np.argsort(IDS)
    table = parquet.read_table(tmp_path / "rows.parquet")
    found = np.load(tmp_path / "rows.npz")
    assert table["id"].to_pylist() == IDS.tolist()
    np.testing.assert_array_equal(np.array(table["row"].to_pylist()), ROWS)
    np.testing.assert_array_equal(found["ids"], IDS[order])
    np.testing.assert_array_equal(found["rows"], ROWS[order])
    text = (tmp_path / "rows.txt").read_text().splitlines()
    assert text == ["3 2", "5 3 4", "-3 0 0", f"{2**62} nan 1"]


def test_words_name_rows_and_leave_out_others(model: Path, tmp_path: Path) -> None:
    (tmp_path / "words").write_text("<s>\t9\na\nb\nc\nd\nnew york\t4\n")

    assert run("export", "--words", tmp_path / "words", model, tmp_path / "rows.vec") == 0

    assert (tmp_path / "rows.vec").read_text() == "1 2\nnew_york 3 4\n"


def test_an_unknown_ending_leaves_nothing(model: Path, tmp_path: Path, capsys: Capture) -> None:
    assert run("export", model, tmp_path / "rows.csv") == 2

    assert "Known: .onnx, .parquet, .npz, .txt, .vec" in capsys.readouterr().err
    assert not list(tmp_path.glob("rows*"))
