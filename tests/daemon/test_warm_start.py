"""A job begins with the parameters of another one, its cuts or its model: real processes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from psrt.cli import main
from psrt.core.errors import CATALOGUE, ErrorCode
from psrt.pserver.checkpoints import complete_cuts
from psrt.pserver.saved import open_state
from psrt.storage.locate import directory_at
from tests.support.processes import psrt
from tests.support.small_job import BATCH, TABLE, lines, write_files

EPOCHS = 30
"""Enough for a cut: the pservers check ten times a second whether one is due."""

SECTION = "\n[pserver]\ncheckpoint_every_steps = 10\n"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The job file of a job with a model in `model` and cuts in `cuts`."""
    directory = tmp_path_factory.mktemp("trained")
    job = write_files(directory, [lines(BATCH * 20, seed=n) for n in range(2)], epochs=EPOCHS)
    job.write_text(job.read_text() + SECTION)
    code, output = launched(
        job, "first", "--save", directory / "model", "--checkpoint-dir", directory / "cuts"
    )
    assert code == 0, output
    assert complete_cuts(directory_at(directory / "cuts"))
    return job


def launched(job: Path, name: str, *flags: object) -> tuple[int, str]:
    """Exit code and output of a launch with one pserver and one trainer more than the first."""
    logs = "--log-dir", str(job.parent / f"logs-{name}")
    given = *logs, "--trainers", "2", "--pservers", "1", *map(str, flags)
    with psrt(job.parent / f"{name}.log", "launch", str(job), *given) as running:
        code = running.exit_code()
        return code, running.output + trainer_log(job.parent / f"logs-{name}")


def trainer_log(logs: Path) -> str:
    path = logs / "trainer.0.log"
    return path.read_text() if path.is_file() else ""


def job_from(trained: Path, directory: Path, optimizer: str = "Adagrad") -> Path:
    """A job with new data and perhaps another optimizer, which makes a cut in every round."""
    job = write_files(directory, [lines(BATCH, seed=n) for n in (7, 8)])
    program = directory / "program.py"
    program.write_text(program.read_text().replace("Adagrad", optimizer))
    return job


@pytest.mark.long
@pytest.mark.parametrize("kind", ["model", "cuts"])
def test_a_job_goes_on_with_new_data_and_another_optimizer(
    trained: Path, tmp_path: Path, kind: str
) -> None:
    job, source = job_from(trained, tmp_path / "job", "Adam"), trained.parent / kind

    code, output = launched(
        job, kind, "--warm-start", source, "--warm-start-strict", "--save", tmp_path / "model"
    )

    assert code == 0, output
    newest = complete_cuts(directory_at(trained.parent / "cuts"))[-1]
    assert f"begins with {f'cut {newest} of' if kind == 'cuts' else 'model'} {source}" in output
    assert "3 of 3 parameters, 0 with optimizer state" in output
    state = open_state(str(source))
    before = {
        row_id: row.tobytes()
        for group in state.sparse[TABLE].groups(0, 1024)
        for row_id, row in zip(group.rows.ids.tolist(), group.weights(4), strict=True)
    }
    rows = saved_rows(tmp_path / "model")
    assert before.keys() <= rows.keys()
    pushed = {int(word) for text in data_of(job) for line in text for word in line.split()[3:5]}
    untouched = before.keys() - pushed
    assert all(rows[row_id] == before[row_id] for row_id in untouched)
    assert any(rows[row_id] != before[row_id] for row_id in pushed & before.keys())


def data_of(job: Path) -> list[list[str]]:
    return [path.read_text().splitlines() for path in sorted(job.parent.glob("train-*"))]


def saved_rows(model: Path) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    for ids_file in sorted((model / "sparse").glob("*.ids.npy")):
        rows = np.load(str(ids_file).replace(".ids.", ".rows."))
        found |= {int(i): row.tobytes() for i, row in zip(np.load(ids_file), rows, strict=True)}
    return found


def test_a_job_file_names_its_source_and_rules_relative_to_itself(
    trained: Path, tmp_path: Path
) -> None:
    job = job_from(trained, tmp_path / "job")
    (tmp_path / "rules.toml").write_text(f'[[rule]]\nparameter = "{TABLE}"\nskip = true\n')
    (tmp_path / "model").symlink_to(trained.parent / "model")
    text = 'warm_start = "../model"\nwarm_start_map = "../rules.toml"\n[data]'
    job.write_text(job.read_text().replace("[data]", text, 1))

    code, output = launched(job, "by-file")

    assert code == 0, output
    assert "2 of 3 parameters, 0 with optimizer state" in output
    assert f"begins anew by a rule: {TABLE}" in output
    assert f"not used: {TABLE}" in output


def test_a_strict_mismatch_ends_the_job_before_training_with_the_names(
    trained: Path, tmp_path: Path
) -> None:
    job = job_from(trained, tmp_path / "job")
    rules = tmp_path / "rules.toml"
    rules.write_text(f'[[rule]]\nparameter = "{TABLE}"\nfrom = "rows"\n')
    flags = "--warm-start", trained.parent / "model", "--warm-start-map", rules

    code, output = launched(job, "strict", *flags, "--warm-start-strict")

    assert code == CATALOGUE[ErrorCode.CHILD_FAILED].exit_code
    assert f"missing in the source: {TABLE} (from rows); not used: {TABLE}" in output
    assert "WARM_START_MISFIT (exit 76)" in output
    assert "step " not in trainer_log(job.parent / "logs-strict")


def test_a_model_of_the_last_cut_is_exported_and_predicts(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cuts, out = trained.parent / "cuts", tmp_path / "model"

    first, words = trained.parent / "model", ["--to", "model", "--job", str(trained), str(out)]

    assert main.run(["checkpoint", "export", str(cuts), *words]) == 0
    data = str(trained.parent / "test-0")
    assert main.run(["predict", str(out), data, "--out", str(tmp_path / "predicted")]) == 0

    manifests = [json.loads((each / "manifest.json").read_text()) for each in (out, first)]
    assert manifests[0]["program"] == manifests[1]["program"]
    assert manifests[0]["tables"] == manifests[1]["tables"]
    assert manifests[0]["prediction"] == manifests[1]["prediction"]


def test_a_warm_start_needs_pservers(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = str(trained.parent / "model")

    assert main.run(["trainer", "--local", "--warm-start", source, str(trained)]) == 2
    assert "--local has none" in capsys.readouterr().err
    assert main.run(["trainer", "--local", "--warm-start-strict", str(trained)]) == 2
    assert "has rules, but no source" in capsys.readouterr().err
