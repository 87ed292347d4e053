"""Raw rows of three tables: validate, end early, resume, warm start, each in the table's format."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from psrt.cli import main
from psrt.config.load import load_job
from psrt.config.sections import ValidationConfig
from tests.cluster.test_train_evaluate import run_trainers
from tests.conformance.test_scores_agree import HEAD, JOB, SHAPES, Rows, Shape

VALIDATION = """
[validation]
metric = "loss"
min_delta = 10.0
patience = {patience}
"""
ROWS, EPOCHS = 300, 9


def labelled(shape: Shape, draw: random.Random, count: int) -> Rows:
    """Rows whose label follows from a column, so that there is something to learn."""
    label = shape.columns.index(shape.label)
    known = {"adult": ("<=50K", ">50K")}.get(shape.name, ("0", "1"))
    cause = {"criteo": "C1", "avazu": "C1", "adult": "workclass"}[shape.name]
    rows = [shape.row(draw) for _ in range(count)]
    for row in rows:
        row[label] = known[hash_of(row[shape.columns.index(cause)]) % 2]
    return rows


def hash_of(text: str) -> int:
    return sum(map(ord, text))


def write(shape: Shape, directory: Path, patience: int) -> Path:
    job = directory / "job.toml"
    text = JOB.format(name=shape.name, format=shape.format)
    text = text.replace("[data]\n", f'[data]\nepochs = {EPOCHS}\nvalidation = ["valid.raw"]\n')
    job.write_text(text + shape.data + VALIDATION.format(patience=patience))
    return job


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_table_is_validated_ended_early_resumed_and_begun_from(
    shape: Shape, tmp_path: Path
) -> None:
    draw, report = random.Random(5), tmp_path / "report.json"
    shape.write(tmp_path / "train.raw", labelled(shape, draw, ROWS))
    shape.write(tmp_path / "valid.raw", labelled(shape, draw, ROWS // 3))
    (tmp_path / "program.py").write_text(HEAD + shape.program)
    state, model = str(tmp_path / "state.json"), str(tmp_path / "model")

    def trained(patience: int, *flags: str) -> dict[str, Any]:
        job = write(shape, tmp_path, patience)
        given = ["--local", "--report", str(report), "--state", state, *flags]
        assert main.run(["trainer", *given, str(job)]) == 0
        return json.loads(report.read_text())

    first = trained(1, "--save", model)
    again = trained(3, "--save", model, "--resume", state)
    warm, cold = (first_loss(tmp_path / "job.toml", source) for source in (model, ""))

    assert [each["epoch"] for each in first["validations"]] == [1, 2]
    assert [each["epoch"] for each in again["validations"]] == [3, 4]
    assert first["ended_early"] is again["ended_early"] is True
    assert again["best_validation"] == first["best_validation"] == first["validations"][0]
    last = again["validations"][-1]
    assert last["loss"] < first["validations"][0]["loss"]
    assert abs(warm - last["loss"]) < abs(cold - last["loss"])


def first_loss(job: Path, warm_start: str) -> float:
    """The loss of validation after one epoch on pservers that begin there, "" = untrained."""
    config = load_job(str(job), environ={}).config
    once = replace(config, data=replace(config.data, epochs=1), validation=ValidationConfig())
    (facts,) = run_trainers(once, 1, warm_start=warm_start)
    return float(facts["validations"][0]["loss"])
