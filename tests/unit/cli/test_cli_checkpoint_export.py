"""`psrt checkpoint diff` and `psrt checkpoint export` as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from psrt.cli import main
from psrt.cli.checkpoint import array_files
from psrt.config.load import load_job as read_job
from psrt.pserver.saved import CutState, RowPart, cut_state, open_cut_at
from psrt.pserver.tables import DenseTable, TableRegistry
from psrt.storage.local_directory import LocalDirectory
from psrt.trainer.inputs import load_job
from psrt.trainer.models import load
from tests.support.cuts import write_cuts
from tests.support.frozen import SPARSE, apply, holds, pushes_of, table_of
from tests.support.saved_cuts import cut_of, cut_of_pservers

Capture = pytest.CaptureFixture[str]

PROGRAM = """
import psrt
from psrt import layers

def build(width=5, optimizer=psrt.optimizer.Sgd(0.1)):
    ids = layers.data("ids", shape=(1,), dtype="int64", ragged=True)
    click = layers.data("click", shape=(1,))
    emb = layers.embedding(ids, (1000, width), is_sparse=True, param="emb")
    logit = layers.fc(layers.sequence_pool(emb, "sum"), 1, param="fc.w_0", bias="fc.b_0")
    loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, click))
    return psrt.Model(loss, logit, click, optimizer, prediction_is="logit")
"""


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A directory with cuts 1 and 2, whose parameters are equal."""
    write_cuts(LocalDirectory(tmp_path / "cuts"), 2)
    return tmp_path / "cuts"


def run(*words: object) -> int:
    return main.run(["checkpoint", *map(str, words)])


def state_at(directory: Path) -> CutState:
    return cut_state(open_cut_at(str(directory)))


def rows_of(state: CutState) -> RowPart:
    """All rows of the table, ids in rising order."""
    with state.sparse["emb"].walk(0, 1024) as walk:
        return walk.rows(0, 1024).rows


def damage(path: Path) -> None:
    """Change one bit in the arrays of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) - 150] ^= 1
    path.write_bytes(data)


# --- diff -----------------------------------------------------------------------------------------


def test_equal_cuts_differ_in_nothing(two: Path, capsys: Capture) -> None:
    assert run("diff", two, "1", "latest") == 0

    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == f"from cut 1 of {two} (round 20) to cut 2 of {two} (round 40)"
    assert [line.split() for line in shown[3:]] == [
        ["w", "dense", "12", "×", "5", *(["0", "0", "0", "60", "0", "0", "0"])],
        ["emb", "sparse", "ids", "×", "5", *(["0", "0", "0", "14", "0", "0", "0"])],
    ]


def test_cuts_of_two_directories_are_compared_as_json(
    two: Path, tmp_path: Path, capsys: Capture
) -> None:
    write_cuts(LocalDirectory(tmp_path / "other"), 1)

    assert run("diff", f"{two}#2", tmp_path / "other", "--json") == 0

    shown = json.loads(capsys.readouterr().out)
    assert (shown["before"]["cut"], shown["after"]["cut"]) == (2, 1)
    assert [(each["name"], each["state"]) for each in shown["parameters"]] == [
        *(("w", "equal"), ("emb", "equal"))
    ]


def test_one_directory_is_not_enough_to_compare(two: Path, capsys: Capture) -> None:
    assert run("diff", two) == 2
    assert "two of its cuts, or two directories" in capsys.readouterr().err


def test_a_damaged_file_ends_a_comparison_with_its_name(two: Path, capsys: Capture) -> None:
    damage(two / "cut-00000002" / "part-0" / "table-0.arrays")

    assert run("diff", two, "1", "2") == 73
    assert "cut-00000002/part-0/table-0.arrays is damaged" in capsys.readouterr().err


# --- export ---------------------------------------------------------------------------------------


def test_a_cut_is_exported_as_numpy_files(two: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out"

    assert run("export", two, "1", "--to", "numpy", out) == 0

    state = state_at(two)
    assert np.load(out / "dense/w.npy").tobytes() == state.dense["w"].values(0, 60).tobytes()
    moments = np.load(out / "dense/w.state.npy")
    assert moments.shape == (1, 12, 5)
    assert moments.tobytes() == state.dense["w"].state(0, 60).tobytes()
    rows = rows_of(state)
    order = np.argsort(np.load(out / "sparse/emb.ids.npy"))
    assert np.array_equal(np.load(out / "sparse/emb.ids.npy")[order], rows.ids)
    assert np.array_equal(np.load(out / "sparse/emb.weights.npy")[order], rows.weights)
    assert np.load(out / "sparse/emb.updates.npy").tolist() == [1] * 14
    facts = json.loads((out / "export.json").read_text())
    assert (facts["cut"]["number"], facts["parameters"][1]["rows"]) == (1, 14)
    files = {name for each in facts["parameters"] for name in each["files"]}
    assert files == {str(path.relative_to(out)) for path in out.glob("*/*")}
    assert "1 dense parameters, 14 rows" in capsys.readouterr().err


def test_a_cut_is_exported_as_parquet_files(two: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")

    assert run("export", two, "--to", "parquet", tmp_path / "out") == 0

    table = parquet.read_table(tmp_path / "out" / "sparse" / "emb.parquet")
    rows = rows_of(state_at(two))
    table = table.sort_by("id")
    assert table.column_names == ["id", "weights", "version", "updates"]
    assert table["id"].to_pylist() == rows.ids.tolist()
    assert np.array_equal(np.array(table["weights"].to_pylist(), "f4"), rows.weights)
    assert (tmp_path / "out" / "dense" / "w.npy").is_file()


@pytest.mark.parametrize("name", ["growing, all rows", "with a life", "of bfloat16"])
def test_numpy_and_parquet_have_the_columns_of_every_kind_of_table(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(array_files, "_groups", lambda table, advance: table.groups(0, 1024, 4096))
    table = table_of(SPARSE[name])
    apply(table, pushes_of(1, 3))
    saved = cut_of(tmp_path / "cut", [[]], [[table.freeze()]]).sparse["emb"]
    (tmp_path / "sparse").mkdir()

    files, rows = array_files.write_numpy_table(tmp_path, "emb", saved, int)
    array_files.write_parquet_table(tmp_path, "emb", saved, int)

    columns = {file.split(".")[1]: np.load(tmp_path / file) for file in files}
    found = parquet.read_table(tmp_path / "sparse" / "emb.parquet")
    assert rows == len(columns["ids"]) == found.num_rows
    assert columns["ids"].tolist() == found["id"].to_pylist()
    for column in columns.keys() - {"ids", "long_ids", "long_state"}:
        assert np.array_equal(columns[column], np.array(found[column].to_pylist()), equal_nan=True)
    if "long_ids" in columns:
        grown = np.array(found["grown"].to_pylist())
        assert np.array_equal(columns["ids"][grown], columns["long_ids"])
        assert np.array_equal(
            columns["long_state"], np.array(found["long_state"].to_pylist())[grown]
        )


def test_a_table_without_rows_has_files_without_rows(tmp_path: Path) -> None:
    saved = cut_of(tmp_path / "cut", [[]], [[table_of(SPARSE["adagrad"]).freeze()]]).sparse["emb"]
    (tmp_path / "sparse").mkdir()

    files, rows = array_files.write_numpy_table(tmp_path, "emb", saved, int)

    assert rows == 0
    assert np.load(tmp_path / "sparse/emb.weights.npy").shape == (0, 5)
    assert len(files) == 5


def test_an_export_replaces_nothing(two: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "out").mkdir()

    for kind in ("numpy", "model"):
        assert run("export", two, "--to", kind, tmp_path / "out") == 2
        assert "exists; an export replaces nothing" in capsys.readouterr().err
    assert not any((tmp_path / "out").iterdir())


def test_an_export_of_a_damaged_cut_names_the_file_and_leaves_nothing(
    two: Path, tmp_path: Path, capsys: Capture
) -> None:
    damage(two / "cut-00000002" / "part-1" / "table-0.arrays")

    assert run("export", two, "--to", "numpy", tmp_path / "out") == 73

    assert "cut-00000002/part-1/table-0.arrays is damaged" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["cuts"]


def test_a_model_needs_the_program_of_a_job_file(
    two: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert run("export", two, "--to", "model", tmp_path / "out") == 2
    assert "has parameters but no program" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_job_with_other_parameters_is_refused_with_all_their_names(
    two: Path, tmp_path: Path, capsys: Capture
) -> None:
    job = written_job(tmp_path, "width = 7")

    assert run("export", two, "--to", "model", "--job", job, tmp_path / "out") == 2

    message = capsys.readouterr().err
    assert "emb has the shape (5,) in the cut, not (7,)" in message
    assert "fc.w_0 is not in the cut; fc.b_0 is not in the cut" in message


def test_an_exported_model_has_the_values_of_the_cut(tmp_path: Path) -> None:
    job = written_job(tmp_path)
    cut = job_cut(job, tmp_path / "cuts")

    assert run("export", tmp_path / "cuts", "--to", "model", "--job", job, tmp_path / "out") == 0

    model = load(tmp_path / "out")
    assert model.dense["fc.w_0"].reshape(-1).tobytes() == cut.dense["fc.w_0"].values(0, 5).tobytes()
    rows = rows_of(cut)
    found = model.pull_rows({"emb": rows.ids})["emb"]
    assert found.tobytes() == rows.weights.tobytes()


def written_job(directory: Path, params: str = "") -> Path:
    (directory / "program.py").write_text(PROGRAM)
    job = directory / "job.toml"
    job.write_text(f'[job]\nname = "small"\nprogram = "program.py"\n[job.params]\n{params}\n')
    return job


def job_cut(job: Path, directory: Path) -> CutState:
    """A cut of the job on two pservers, after a push of some rows and of each dense block."""
    plan, pservers = load_job(read_job(str(job)).config).plan(["a:1", "b:1"]), []
    for endpoint in plan.endpoints:
        registry = TableRegistry(stripes=2)
        registry.register(plan.specs_for(endpoint))
        pservers.append(registry.all())
        for table in registry.all():
            if isinstance(table, DenseTable):
                table.apply(np.ones(table.spec.size, np.float32), 0.1)
            else:
                ids = np.array([i for i in range(50) if holds(table, np.int64(i))], np.int64)
                table.apply(table.route(ids), np.ones((len(ids), 5), np.float32), 0.1)
    return cut_of_pservers(directory, *pservers)
