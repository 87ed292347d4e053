"""A standard output that fails costs no training: the model is saved, and the exit code is 0."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.carriers import eventually
from tests.support.processes import DEADLINE_S, ROOT, clean_environment, psrt
from tests.support.small_job import BATCH, lines, write_files


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("trainer --local", "> /dev/full"),
        ("trainer --local", "| true"),
        pytest.param("launch --pservers 1 --trainers 1", "> /dev/full", marks=pytest.mark.long),
    ],
)
def test_a_model_is_saved_without_a_reader_or_room(
    tmp_path: Path, command: str, output: str
) -> None:
    write_files(tmp_path, [lines(BATCH * 4, seed=1)])
    shell = f"set -o pipefail; {sys.executable} -m psrt {command} --save model job.toml {output}"

    done = subprocess.run(
        ["bash", "-c", shell],
        cwd=tmp_path,
        env=clean_environment() | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "model" / "manifest.json").exists()
    assert done.stderr.count("the standard output cannot be written") == 1
    assert "Traceback" not in done.stderr


def test_a_pserver_serves_without_a_standard_output(tmp_path: Path) -> None:
    job, ready = write_files(tmp_path, [lines(BATCH * 4, seed=1)]), tmp_path / "ready.json"
    command = [sys.executable, "-m", "psrt", "pserver", "--port", "0", "--ready-file", str(ready)]
    environment = clean_environment() | {"PYTHONPATH": str(ROOT)}
    with open("/dev/full", "w") as full, (tmp_path / "errors").open("w") as errors:
        pserver = subprocess.Popen(command, stdout=full, stderr=errors, env=environment)
    try:
        eventually(ready.exists, "the ready file", DEADLINE_S, logs=[tmp_path / "errors"])
        endpoint = json.loads(ready.read_text())["endpoint"]
        with psrt(tmp_path / "log", "trainer", "--endpoints", endpoint, str(job)) as trainer:
            assert trainer.exit_code() == 0, trainer.output
        assert pserver.wait(DEADLINE_S) == 0
    finally:
        pserver.kill()
        pserver.wait()
