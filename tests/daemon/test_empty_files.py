"""A trainer without an example ends with an error, and no model is saved."""

from __future__ import annotations

from pathlib import Path

import pytest

from psrt.cli import main
from psrt.core.errors import CATALOGUE, ErrorCode
from tests.support.processes import psrt
from tests.support.small_job import BATCH, lines, write_files


def test_empty_files_are_named_and_no_model_is_saved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = write_files(tmp_path, [[], ["\n"]])

    code = main.run(["trainer", "--local", "--save", str(tmp_path / "model"), str(job)])

    assert code == CATALOGUE[ErrorCode.DATA_MISSING].exit_code
    said = capsys.readouterr().err
    assert "have no example: " in said
    assert "train-0, " in said
    assert not (tmp_path / "model").exists()


def test_one_empty_file_of_two_ends_the_job(tmp_path: Path) -> None:
    job = write_files(tmp_path, [lines(BATCH * 2, seed=1), []])
    given = "--pservers", "1", "--trainers", "2", "--log-dir", str(tmp_path / "logs")
    with psrt(
        tmp_path / "log", "launch", *given, "--save", str(tmp_path / "model"), str(job)
    ) as run:
        code = run.exit_code()

    assert code == CATALOGUE[ErrorCode.CHILD_FAILED].exit_code
    assert "have no example: " in run.output
    assert "train-1" in run.output
    assert not (tmp_path / "model").exists()
