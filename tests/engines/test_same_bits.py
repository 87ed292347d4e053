"""A click model trained by an engine has the bits of the one that `psrt launch` trains here."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pytest

from psrt.config.load import load
from psrt.config.sections import LaunchConfig
from psrt.launch import launching
from tests.support import small_job

pytestmark = pytest.mark.slow


def test_the_saved_model_is_equal_byte_for_byte(
    on: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if on["on"] == "kubernetes":  # its pods have what a ConfigMap brings
        monkeypatch.setenv("FAKE_PROGRAM", json.dumps([sys.executable, "-m", "psrt"]))
        on = {**on, "bring": "train-*,test-*"}
    rows = small_job.lines(640, seed=7)
    job = small_job.write_files(tmp_path / "job", [rows[:320], rows[320:]])

    assert train(job, tmp_path / "here") == 0
    assert train(job, tmp_path / "there", **on) == 0

    assert digest(tmp_path / "here") == digest(tmp_path / "there")


def train(job: Path, directory: Path, **flags: object) -> int:
    own = {"job": str(job), "log_dir": str(directory / "logs"), "save": str(directory / "model")}
    said: list[str] = []
    loaded = load(LaunchConfig, flags={**own, **flags}, file=str(job))
    return launching.run(loaded, say=said.append)


def digest(directory: Path) -> dict[str, str]:
    model = directory / "model"
    files = sorted(path for path in model.rglob("*") if path.is_file())
    assert files
    return {
        str(path.relative_to(model)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }
