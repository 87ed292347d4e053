"""`psrt plot`: curves of runs in one picture."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from psrt.cli import main

Capture = pytest.CaptureFixture[str]
RECORDS = (
    {"kind": "train", "step": 10, "seconds": 1.0, "examples": 100, "loss": 0.5},
    {"kind": "train", "step": 20, "seconds": 2.0, "examples": 200, "loss": 0.4},
    {"kind": "validation", "step": 20, "seconds": 2.5, "examples": 50, "loss": 0.45, "auc": 0.7},
)


def written(path: Path) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return path


def test_runs_are_drawn_side_by_side(tmp_path: Path, capsys: Capture) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    run, picture = tmp_path / "run", tmp_path / "both.svg"
    run.mkdir()
    written(run / "trainer.0.curves.jsonl")

    code = main.run(["plot", str(run), str(written(tmp_path / "b.jsonl")), "--out", str(picture)])

    assert code == 0
    assert "loss, auc of 2 runs" in capsys.readouterr().out
    assert picture.read_text().count("<path") > 10


def test_an_unknown_value_is_refused_with_those_that_are_there(
    tmp_path: Path, capsys: Capture
) -> None:
    code = main.run(["plot", str(written(tmp_path / "a.jsonl")), "--value", "acu"])

    assert code != 0
    assert "They have auc, loss" in capsys.readouterr().err


def test_a_directory_without_curves_is_refused(tmp_path: Path, capsys: Capture) -> None:
    assert main.run(["plot", str(tmp_path)]) != 0
    assert "has no curves" in capsys.readouterr().err
