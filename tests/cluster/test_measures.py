"""One AUC by group in validation, test, curves and predictions of a saved model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from psrt.cli import main
from psrt.trainer.measuring import grouped_auc
from tests.support.small_job import lines, write_files

FIELDS = """
    user = layers.data("user", (1,), "int64")
    weight = layers.data("weight", (1,))
"""
MEASURES = """
    prediction = layers.sigmoid(logit)
    return psrt.Model(
        loss, prediction, click, optimizer, group=user, weight=weight, functions={"half": half}
    )

def half(predictions, labels):
    return float(((predictions > 0.5) == labels).mean())
"""


def rows(count: int, seed: int) -> list[str]:
    """Lines of the small job, each with a user and a weight before it."""
    random = np.random.default_rng(seed)
    return [
        f"1 {random.integers(0, 6)} 1 {random.integers(1, 4)} {line}" for line in lines(count, seed)
    ]


def test_measures_are_the_same_in_validation_test_curves_and_predictions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = write_files(tmp_path, [rows(400, seed=1)])
    program = tmp_path / "program.py"
    head, _, _ = program.read_text().partition("    return psrt.Model")
    head = head.replace("    click = ", f"{FIELDS.strip(chr(10))}\n    click = ")
    program.write_text(head + MEASURES)
    held = rows(300, seed=7)
    for name in ("test-0", "valid-0"):
        (tmp_path / name).write_text("".join(held))
    model, report = str(tmp_path / "model"), tmp_path / "report.json"
    curves, scores = tmp_path / "a.curves.jsonl", tmp_path / "scores.txt"

    flags = ["--local", "--save", model, "--report", str(report), "--curves", str(curves)]
    train = 'train = ["train-*"]'
    job.write_text(job.read_text().replace(train, f'{train}\nvalidation = ["valid-0"]'))
    assert main.run(["trainer", *flags, str(job)]) == 0
    predict = ["predict", model, "--measure", "--out", str(scores), str(tmp_path / "test-0")]
    capsys.readouterr()
    assert main.run(predict) == 0
    measured = capsys.readouterr().err

    cells = [line.split() for line in held]
    user, weight, label = (np.array([float(line[at]) for line in cells]) for at in (1, 3, 5))
    score = np.loadtxt(scores, dtype=np.float32)
    gauc = grouped_auc(score, label, user.astype(np.int64), weight)
    facts = json.loads(report.read_text())
    assert facts["test_metrics"]["gauc"] == pytest.approx(gauc, abs=1e-9)
    assert facts["test_metrics"]["half"] == pytest.approx(np.mean((score > 0.5) == label))
    assert facts["validations"][0]["gauc"] == facts["test_metrics"]["gauc"]
    records = [json.loads(line) for line in curves.read_text().splitlines()]
    for kind in ("train", "validation"):
        of_kind = next(record for record in records if record["kind"] == kind)
        assert {"gauc", "weighted_auc", "half"} <= set(of_kind)
    assert f"gauc {gauc:.4f}" in measured
    weighted = facts["test_metrics"]["weighted_auc"]
    assert f"weighted_auc {weighted:.4f}" in measured

    (tmp_path / "new.txt").write_text("1 3 1 1 2 1 101 2 0.5 0.5\n")
    slots = "user,weight,ids,x"
    new = ["--measure", "--slots", slots, str(tmp_path / "new.txt")]
    assert main.run(["predict", model, *new]) == 2
    assert "the files have no click" in capsys.readouterr().err
