"""Cuts have the course of validations: a resumed job ends early where all of it had ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import psrt
from tests.support.small_job import BATCH, lines, write_files

VALIDATION = """
[validation]
patience = 2
min_delta = 10.0
"""


def launched(job: Path, name: str, *flags: str) -> tuple[list[dict[str, Any]], str]:
    """Reports of both trainers, and what the launch has printed."""
    logs = job.parent / name
    given = "--pservers", "1", "--trainers", "2", "--log-dir", str(logs)
    cuts = "--checkpoint-dir", str(job.parent / "cuts")
    with psrt(job.parent / f"{name}.log", "launch", *given, *cuts, *flags, str(job)) as launch:
        assert launch.exit_code() == 0, launch.output
        output = launch.output
    reports = (logs / f"trainer.{number}.report.json" for number in range(2))
    return [json.loads(report.read_text()) for report in reports], output


@pytest.mark.long
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_job_that_ended_early_ends_at_once_when_it_is_resumed(tmp_path: Path, mode: str) -> None:
    texts = [lines(BATCH * 4, seed=n) for n in range(2)]
    job = write_files(tmp_path, texts, mode, epochs=60)
    (tmp_path / "valid-0").write_text("".join(lines(100, seed=77)))
    train = 'train = ["train-*"]'
    text = job.read_text().replace(train, f'{train}\nvalidation = ["valid-*"]')
    job.write_text(text + VALIDATION)

    (first, _), _ = launched(job, "first")
    again, output = launched(job, "again", "--resume", "latest")

    assert [each["epoch"] for each in first["validations"]] == [1, 2, 3]
    assert [report["steps"] for report in again] == [0, 0]
    assert again[0]["ended_early"] is True
    assert again[0]["best_validation"] == first["best_validation"]
    assert "ends early: auc has not improved" in output
