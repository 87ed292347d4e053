"""The sweep of the examples finds values, and the command that it prints trains with them."""

from __future__ import annotations

import importlib.util
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from psrt.cli import main
from tests.unit.cli.conftest import own_settings as own_settings  # a fixture: --set ends here

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_a_sweep_ends_bad_trials_early_and_prints_a_command_that_trains(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna", reason="optuna is not installed")
    for name in ("adult", "sweep"):
        shutil.copytree(EXAMPLES / name, tmp_path / name)
    data = tmp_path / "adult" / "data"
    make = [sys.executable, str(tmp_path / "adult" / "make_data.py"), str(data)]
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec = importlib.util.spec_from_file_location("sweep", tmp_path / "sweep" / "sweep.py")
    assert spec is not None
    assert spec.loader is not None
    sweep = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sweep)
    storage = f"sqlite:///{tmp_path / 'sweep.db'}"

    study = sweep.search(["--trials", "7", "--epochs", "2", "--storage", storage])
    again = sweep.search(["--trials", "1", "--epochs", "2", "--storage", storage])

    values = [trial.value for trial in study.trials if trial.value is not None]
    assert study.best_value == max(values) > 0.7
    assert len(set(values)) > 1
    assert len(again.trials) == 8
    best = capsys.readouterr().out.splitlines()[-1]
    words = shlex.split(best)
    assert words[:3] == ["psrt", "trainer", "--local"]
    assert main.run([*words[1:-1], "--epochs", "1", words[-1]]) == 0
    assert "test  500 examples" in capsys.readouterr().out
