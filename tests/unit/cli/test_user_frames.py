"""Tracebacks end at the user's line, unless all frames are asked for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from psrt.cli import main

SCRIPT = """
import psrt
from psrt import layers

def build():
    x = layers.data("x", (3,))
    return layers.fc(x, -1)

with psrt.program():
    build()
"""
CALLBACK = """
import numpy as np
import psrt
from psrt import layers

with psrt.program():
    x, y = layers.data("x", (1,)), layers.data("y", (1,))
    loss = layers.mean(layers.square(layers.fc(x, 1) - y))
    model = psrt.Model(loss, loss, y, psrt.optimizer.Sgd(0.1))

class Batches:
    def __iter__(self):
        raise KeyError("mine")

psrt.fit(model, Batches())
"""


def frames_of(text: str) -> list[str]:
    """Names of the files of a traceback."""
    return [Path(name).name for name in re.findall(r'File "([^"]+)", line', text)]


def run_python(path: Path, **variables: str) -> str:
    command = [sys.executable, str(path)]
    environment = {**os.environ, **variables}
    found = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert found.returncode == 1
    return found.stderr


def test_an_error_in_a_layer_ends_at_the_line_that_calls_it(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)

    text = run_python(script)

    assert frames_of(text) == ["script.py", "script.py"]
    assert "return layers.fc(x, -1)" in text
    assert text.splitlines()[-1].startswith("psrt.core.errors.ProgramError: ")
    assert len(set(frames_of(run_python(script, PSRT_DEBUG="1")))) > 1


def test_an_exception_of_the_users_own_code_has_the_users_frames(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(CALLBACK)

    text = run_python(script)

    assert frames_of(text) == ["script.py", "script.py"]
    assert text.splitlines()[-1] == "KeyError: 'mine'"


def test_a_script_of_psrt_trainer_ends_at_its_line_and_debug_prints_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PSRT_DEBUG", "0")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)

    main.run(["trainer", str(script)])
    short = frames_of(capsys.readouterr().err)
    main.run(["trainer", "--debug", str(script)])
    whole = frames_of(capsys.readouterr().err)

    assert short == ["script.py", "script.py"]
    assert len(whole) > 2


def test_debug_prints_the_traceback_of_a_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PSRT_DEBUG", "0")
    (tmp_path / "program.py").write_text("def build():\n    return 1 / 0\n")
    job = tmp_path / "job.toml"
    job.write_text('[job]\nname = "j"\nprogram = "program.py"\n[data]\ntrain = ["x"]\n')

    code = main.run(["graph", str(job)])
    assert frames_of(capsys.readouterr().err) == []
    assert main.run(["graph", "--debug", str(job)]) == code
    assert "program.py" in frames_of(capsys.readouterr().err)
