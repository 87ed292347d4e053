"""`psrt trainer --set`, `--epochs` and `--batch-size`, as commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from psrt.cli import main
from tests.support.small_job import PROGRAM, lines, write_files


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job of 40 examples."""
    path = write_files(tmp_path, [lines(40, seed=1)], batch=8)
    (tmp_path / "program.py").write_text(PROGRAM.replace("def build():", "def build(rate=0.1):"))
    return path


def test_flags_replace_settings_of_the_job(job: Path) -> None:
    report = job.parent / "report.json"
    flags = ["--epochs", "3", "--batch-size", "20", "--set", "job.params.rate=0.05"]

    code = main.run(["trainer", "--local", "--report", str(report), *flags, str(job)])

    facts = json.loads(report.read_text())
    assert (code, facts["epochs"], facts["steps"]) == (0, 3, 6)


def test_a_setting_that_does_not_exist_is_named(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main.run(["trainer", "--local", "--set", "data.epoch=3", str(job)])

    assert code == 2
    assert "data.epochs" in capsys.readouterr().err
