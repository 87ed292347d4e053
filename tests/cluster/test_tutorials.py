"""The tutorials that start in an empty folder: their files, run by their commands, as written."""

from __future__ import annotations

import ast
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.pages import PSRT, page
from tests.support.processes import ROOT, clean_environment

BLOCK = re.compile(r"```(python|toml|sh)(?: title=\"([\w.]+)\")?\n(.*?)```", re.S)


def run_in(folder: Path, commands: str) -> str:
    """Run commands as a shell with this environment of Python does; returns what they print."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    log, errors = folder / "printed.log", folder / "errors.log"
    with log.open("w") as output, errors.open("a") as failures:
        done = subprocess.run(
            ["bash", "-ec", f"{PSRT}\n{commands}"],
            cwd=folder,
            env=clean_environment() | {"PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=failures,
            timeout=150,
        )
    assert done.returncode == 0, f"$ {commands}\n{log.read_text()}{errors.read_text()}"
    return log.read_text()


def follow(name: str, folder: Path, port: int = 8080) -> list[str]:
    """Write the files of a tutorial and run its commands; returns what each block prints."""
    printed = []
    blocks = BLOCK.findall(page(f"tutorials/{name}.md"))
    for _, title, text in blocks:
        if title:
            (folder / title).write_text(text)
    for kind, _, text in blocks:
        if kind == "sh" and not text.startswith("pip install"):
            printed.append(run_in(folder, text.replace("8080", str(port))))
    return printed


def auc_in(text: str) -> float:
    return float(re.findall(r"^test .* auc ([\d.]+)", text, re.M)[-1])


def test_a_csv_becomes_a_model_that_scores_new_rows(tmp_path: Path) -> None:
    _, trained, scored = follow("your-csv", tmp_path)

    assert "20,000 examples are well formed; 0 errors" in trained
    assert auc_in(trained) > 0.9
    assert len([line for line in scored.splitlines()[:5] if 0 < float(line) < 1]) == 5
    assert "slot_embeddings_0.w_0" in scored


def test_psrt_and_scikit_learn_find_one_model(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    (printed,) = follow("from-scikit-learn", tmp_path)

    known, own = (
        float(each) for each in re.findall(r"^(?:scikit-learn|psrt): AUC (.*)", printed, re.M)
    )
    assert abs(known - own) < 0.01
    assert own > 0.85


def test_the_model_of_the_scikit_learn_page_trains_without_it(tmp_path: Path) -> None:
    for kind, title, text in BLOCK.findall(page("tutorials/from-scikit-learn.md")):
        if kind == "python":
            (tmp_path / title).write_text(text)

    assert float(run_in(tmp_path, "python with_psrt.py").split()[-1]) > 0.85


def test_the_second_day_goes_on_where_the_first_ended(tmp_path: Path) -> None:
    first, second, alone = follow("train-incrementally", tmp_path)

    assert "3 of 3 parameters, 3 with optimizer state" in second
    assert auc_in(second) > auc_in(alone) + 0.02
    assert auc_in(second) > auc_in(first)


NUMBERS = re.compile(r"[\d,.:×-]+|inf|nan")


def shape_of(text: str) -> set[str]:
    """Lines without their numbers and blanks, and without progress, which depends on time."""
    lines = (NUMBERS.sub("#", line) for line in text.splitlines())
    return {"".join(line.split()) for line in lines if not line.startswith("epoch")}


@pytest.mark.long
def test_the_working_day_prints_what_the_page_shows(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("data"))
    recorded = "".join(re.findall(r"```text\n(.*?)```", page("tutorials/a-working-day.md"), re.S))

    printed = follow("a-working-day", tmp_path)

    notes = (tmp_path / "errors.log").read_text()
    found = "".join([*printed, notes]).replace(str(tmp_path), "/home/me/psrt")
    assert shape_of(recorded) - shape_of(found) == set()
    *_, scores, _, by_onnx = printed
    assert abs(float(scores.split()[0]) - float(by_onnx)) < 1e-6


def test_a_model_gives_the_same_scores_in_files_and_to_requests(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    _, filed, served, _, by_onnx = follow("serve-a-model", tmp_path, port)

    scores = [float(line) for line in filed.splitlines()[:2]]
    np.testing.assert_allclose(ast.literal_eval(served.strip()), scores, atol=1e-6)
    np.testing.assert_allclose(ast.literal_eval(by_onnx.strip()), scores, atol=1e-6)
