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


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Digests of the files that a launch on this host saves."""
    directory = tmp_path_factory.mktemp("here")
    assert train(written_job(directory), directory / "here") == 0
    return digest(directory / "here")


def test_the_saved_model_is_equal_byte_for_byte(
    on: dict[str, str], expected: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if on["on"] == "kubernetes":  # its pods have what a ConfigMap brings
        monkeypatch.setenv("FAKE_PROGRAM", json.dumps([sys.executable, "-m", "psrt"]))
        on = {**on, "bring": "train-*,test-*"}

    assert train(written_job(tmp_path), tmp_path / "there", **on) == 0

    assert digest(tmp_path / "there") == expected


def written_job(directory: Path) -> Path:
    rows = small_job.lines(640, seed=7)
    return small_job.write_files(directory / "job", [rows[:320], rows[320:]])


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
